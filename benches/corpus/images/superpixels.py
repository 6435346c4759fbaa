"""Superpixels: pixels grouped by colour and place around centres on a grid, as k-means does it (SLIC without its search windows).

Source: R. Achanta and others, "SLIC Superpixels" (2012); exercises on segmentation.
"""

import numpy as np

sizes = {"small": {"n": 24}, "large": {"n": 160}}


def inputs(n):
    rng = np.random.default_rng(8)
    y, x = np.mgrid[0:n, 0:n]
    base = np.stack([(x // 20) % 2, (y // 20) % 2, (x + y) // 30 % 2], axis=-1)
    return {"image": 0.6 * base + 0.2 * rng.random((n, n, 3))}


def main(image, turns=5):
    n = len(image)
    place = np.stack(np.mgrid[0:n, 0:n], axis=-1) * (3 / n)
    features = np.concatenate([image, place], axis=-1)
    apart = n // 6
    cy, cx = np.meshgrid(np.arange(apart // 2, n, apart), np.arange(apart // 2, n, apart), indexing="ij")
    centres = features[cy.ravel(), cx.ravel()]
    for _ in range(turns):
        distance = ((features[:, :, None, :] - centres) ** 2).sum(axis=-1)
        label = distance.argmin(axis=-1)
        for k in range(len(centres)):
            members = label == k
            if members.any():
                centres[k] = features[members].mean(axis=0)
    return centres, np.bincount(label.ravel(), minlength=len(centres)), distance.min(axis=-1)
