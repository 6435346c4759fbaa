"""Water and ice: n x n columns of four ocean layers under sea ice, one day per step. Each layer has a temperature and a
salinity, and each column a volume of ice; densities and heat capacities follow sea-water polynomials, heat flows through
air, ice and layers, and growing ice leaves its salt behind. Columns are independent."""

import math
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness

DAY = 86400.0
FREEZING = -1.8
MELT = 917.0 * 334000.0
DEPTH = [50.0, 300.0, 400.0, 1800.0]
PRESSED = [1.0003, 1.0016, 1.0037, 1.0136]


def setup(n, dtype):
    temperature = [
        start + harness.pseudo(n * n, 37 + layer, dtype).reshape(n, n) for layer, start in enumerate((-1.0, 0.1, 3.0, 2.0))
    ]
    salinity = [np.full((n, n), start, dtype) for start in (33.0, 34.5, 34.8, 35.0)]
    return temperature, salinity, 2 * harness.pseudo(n * n, 41, dtype).reshape(n, n)


def density(t, s, factor):
    """Density of sea water at one atmosphere (UNESCO 1981, to second order in salinity), pressed together by `factor`."""
    pure = 999.842594 + t * (
        6.793952e-2 + t * (-9.09529e-3 + t * (1.001685e-4 + t * (-1.120083e-6 + t * 6.536332e-9)))
    )
    linear = 0.824493 + t * (-4.0899e-3 + t * (7.6438e-5 + t * (-8.2467e-7 + t * 5.3875e-9)))
    root = -5.72466e-3 + t * (1.0227e-4 - t * 1.6546e-6)
    return (pure + s * linear + s * np.sqrt(s) * root + s * s * 4.8314e-4) * factor


def heat_capacity(t, s):
    """Specific heat of sea water (Millero, Perron and Desnoyers 1973, to first order in salinity)."""
    pure = 4217.4 + t * (-3.720283 + t * (0.1412855 + t * (-2.654387e-3 + t * 2.093236e-5)))
    return pure + s * (-7.643575 + t * (0.1072763 - t * 1.38385e-3))


def run(state, iters):
    t, s, ice = state
    for step in range(iters):
        air = -10 - 20 * math.cos(2 * math.pi * step / 365)
        height = np.where(ice > 0.5, ice, np.sqrt(ice * 0.5))
        cover = np.minimum(2 * height, 1)
        weight = [density(*layer) for layer in zip(t, s, PRESSED)]
        capacity = [depth * w * heat_capacity(*layer) for depth, w, *layer in zip(DEPTH, weight, t, s)]

        # Heat flows in W/m2, downwards into the named place; an unstable top layer mixes ten times faster.
        mixing = np.where(weight[0] > weight[1], 10, 1).astype(ice.dtype)
        open_water = (1 - cover) * 20 * (air - t[0])
        through_ice = cover * 2 * (air - FREEZING) / (height + 0.1)
        into_ice = cover * 50 * (t[0] - FREEZING)
        up01, up12, up23 = mixing * 2 * (t[1] - t[0]), 2 * (t[2] - t[1]), 2 * (t[3] - t[2])
        growth = -(through_ice + into_ice) / MELT
        t[0] += DAY * (open_water - into_ice + up01) / capacity[0]
        t[1] += DAY * (up12 - up01) / capacity[1]
        t[2] += DAY * (up23 - up12) / capacity[2]
        t[3] -= DAY * up23 / capacity[3]

        exchange01 = mixing * 1e-6 * (s[1] - s[0])
        exchange12, exchange23 = 1e-6 * (s[2] - s[1]), 1e-6 * (s[3] - s[2])
        s[0] += DAY * (growth * (s[0] - 5) + exchange01) / DEPTH[0]
        s[1] += DAY * (exchange12 - exchange01) / DEPTH[1]
        s[2] += DAY * (exchange23 - exchange12) / DEPTH[2]
        s[3] -= DAY * exchange23 / DEPTH[3]
        ice = np.maximum(ice + DAY * growth, 0)
    return lambda: [sum(map(harness.checksum, t)), sum(map(harness.checksum, s)), harness.checksum(ice)]


harness.main("water_ice", setup, run)
