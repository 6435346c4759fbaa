"""Directions of three radio sources from an array of antennas: the spectrum of MUSIC over the noise's eigenvectors.

Source: R. O. Schmidt, "Multiple Emitter Location and Signal Parameter Estimation" (1986); courses on array processing.
"""

import numpy as np

sizes = {"small": {"samples": 200}, "large": {"samples": 40000}}
antennas = 16


def steering(angles):
    return np.exp(-1j * np.pi * np.arange(antennas)[:, None] * np.sin(angles))


def inputs(samples):
    rng = np.random.default_rng(11)
    signals = rng.normal(size=(3, samples)) + 1j * rng.normal(size=(3, samples))
    noise = rng.normal(size=(antennas, samples)) + 1j * rng.normal(size=(antennas, samples))
    return {"x": steering(np.deg2rad([-20, 10, 35])) @ signals + 0.1 * noise}


def main(x):
    covariance = x @ x.conj().T / x.shape[1]
    values, vectors = np.linalg.eigh(covariance)
    noise = vectors[:, :-3]
    degrees = np.linspace(-90, 90, 1801)
    spectrum = 1 / (np.abs(noise.conj().T @ steering(np.deg2rad(degrees))) ** 2).sum(axis=0)
    peaks = np.flatnonzero((spectrum[1:-1] > spectrum[:-2]) & (spectrum[1:-1] > spectrum[2:])) + 1
    best = np.sort(peaks[np.argsort(spectrum[peaks])[-3:]])
    return degrees[best], values, np.log(spectrum)
