"""The vector F^H d of a reconstruction of magnetic resonance images: for n voxels a sum over 512 samples."""

import math
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import harness

SAMPLES = 512


def setup(n, dtype):
    voxels = [harness.pseudo(n, 50 + axis, dtype) for axis in range(3)]
    samples = [harness.pseudo(SAMPLES, 53 + axis, dtype) for axis in range(3)]
    return voxels, samples, [harness.pseudo(SAMPLES, 56 + part, dtype) for part in range(4)]


def run(state, iters):
    voxels, samples, (phi_re, phi_im, d_re, d_im) = state
    for _ in range(iters):
        mu_re = phi_re * d_re + phi_im * d_im
        mu_im = phi_re * d_im - phi_im * d_re
        angle = 2 * math.pi * sum(voxel[:, None] * sample[None, :] for voxel, sample in zip(voxels, samples))
        cosine, sine = np.cos(angle), np.sin(angle)
        re = np.sum(mu_re * cosine - mu_im * sine, axis=1)
        im = np.sum(mu_im * cosine + mu_re * sine, axis=1)
    return lambda: [harness.checksum(re), harness.checksum(im)]


harness.main("mri_fhd", setup, run)
