"""Triangles drawn into a depth buffer, each within its box of the picture: barycentric weights, masks, in place.

Source: G. Gambetta, "Computer Graphics from Scratch", chapters 7 and 12.
"""

import numpy as np

sizes = {"small": {"triangles": 15, "size": 48}, "large": {"triangles": 500, "size": 400}}


def main(triangles, size):
    rng = np.random.default_rng(20)
    scale = [size, size, 1]
    corners = rng.random((triangles, 1, 3)) * scale + rng.normal(size=(triangles, 3, 3)) * [size / 12, size / 12, 0.05]
    depth = np.full((size, size), np.inf)
    owner = np.full((size, size), -1, dtype=np.int32)
    for number, (a, b, c) in enumerate(corners):
        low = np.maximum(np.floor(corners[number, :, :2].min(axis=0)).astype(int), 0)
        high = np.minimum(np.ceil(corners[number, :, :2].max(axis=0)).astype(int) + 1, size)
        if (high <= low).any():
            continue
        area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
        y, x = np.ogrid[low[1] : high[1], low[0] : high[0]]
        first = ((b[0] - x) * (c[1] - y) - (b[1] - y) * (c[0] - x)) / area
        second = ((c[0] - x) * (a[1] - y) - (c[1] - y) * (a[0] - x)) / area
        third = 1 - first - second
        z = first * a[2] + second * b[2] + third * c[2]
        box = depth[low[1] : high[1], low[0] : high[0]]
        seen = (first >= 0) & (second >= 0) & (third >= 0) & (z < box)
        box[seen] = z[seen]
        owner[low[1] : high[1], low[0] : high[0]][seen] = number
    drawn = owner >= 0
    found, pixels = np.unique(owner[drawn], return_counts=True)
    return depth, owner, found, pixels, depth[drawn].mean()
