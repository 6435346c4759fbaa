"""Firing rates of Hodgkin's and Huxley's neurons over many currents, by Euler's steps.

Source: W. Gerstner et al., "Neuronal Dynamics", section 2.2; neuroscience course codes.
"""

import numpy as np

sizes = {"small": {"cells": 100, "steps": 100}, "large": {"cells": 2000, "steps": 1200}}


def vtrap(x, y):
    small = np.abs(x / y) < 1e-6
    return np.where(small, y * (1 - x / y / 2), x / (np.exp(np.where(small, 1.0, x) / y) - 1))


def main(cells, steps, dt=0.02):
    current = np.linspace(0, 20, cells)
    v = np.full(cells, -65.0)
    m, h, n = np.full(cells, 0.05), np.full(cells, 0.6), np.full(cells, 0.32)
    spikes = np.zeros(cells, dtype=int)
    above = np.zeros(cells, dtype=bool)
    trace = np.zeros((steps, 3))
    for i in range(steps):
        am, bm = 0.1 * vtrap(-(v + 40), 10), 4 * np.exp(-(v + 65) / 18)
        ah, bh = 0.07 * np.exp(-(v + 65) / 20), 1 / (1 + np.exp(-(v + 35) / 10))
        an, bn = 0.01 * vtrap(-(v + 55), 10), 0.125 * np.exp(-(v + 65) / 80)
        m += dt * (am * (1 - m) - bm * m)
        h += dt * (ah * (1 - h) - bh * h)
        n += dt * (an * (1 - n) - bn * n)
        ina = 120 * m**3 * h * (v - 50)
        ik = 36 * n**4 * (v + 77)
        il = 0.3 * (v + 54.4)
        v += dt * (current - ina - ik - il)
        now = v > 0
        spikes += now & ~above
        above = now
        trace[i] = v[[0, cells // 2, -1]]
    return spikes, trace, v


tolerance = 1e-7
