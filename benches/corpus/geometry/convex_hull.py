"""Hulls, areas, points within polygons, and the smallest box around points.

Source: M. de Berg et al., "Computational Geometry", chapter 1; F. Preparata, M. Shamos.
"""

import numpy as np

sizes = {"small": {"n": 200, "tests": 300}, "large": {"n": 60_000, "tests": 60_000}}


def hull(points):
    p = points[np.lexsort((points[:, 1], points[:, 0]))]

    def cross(a, b, q):
        return (b[0] - a[0]) * (q[..., 1] - a[1]) - (b[1] - a[1]) * (q[..., 0] - a[0])

    def side(a, b, pts):
        if len(pts) == 0:
            return []
        height = cross(a, b, pts)
        outside = height > 1e-12
        if not outside.any():
            return []
        far = pts[np.argmax(height)]
        rest = pts[outside]
        return side(a, far, rest) + [far] + side(far, b, rest)

    a, b = p[0], p[-1]
    return np.array([a] + side(a, b, p) + [b] + side(b, a, p))


def inside(polygon, q):
    x, y = q[:, 0][:, None], q[:, 1][:, None]
    x1, y1 = polygon.T
    x2, y2 = np.roll(polygon, -1, axis=0).T
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = ((y1 > y) != (y2 > y)) & (x < (x2 - x1) * (y - y1) / (y2 - y1) + x1)
    return crossing.sum(axis=1) % 2 == 1


def main(n, tests):
    rng = np.random.default_rng(6)
    points = rng.standard_normal((n, 2)) @ np.array([[2.0, 0.7], [0.0, 1.0]])
    H = hull(points)
    x, y = H.T
    area = 0.5 * abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))
    q = rng.uniform(-4, 4, (tests, 2))
    share = inside(H, q)
    star = np.array([[np.cos(t) * (2 if k % 2 else 4), np.sin(t) * (2 if k % 2 else 4)] for k, t in enumerate(np.linspace(0, 2 * np.pi, 10, endpoint=False))])
    edges = np.diff(np.vstack([H, H[:1]]), axis=0)
    angles = np.unique(np.round(np.arctan2(edges[:, 1], edges[:, 0]) % (np.pi / 2), 9))
    best = np.inf
    for t in angles:
        R = np.array([[np.cos(t), np.sin(t)], [-np.sin(t), np.cos(t)]])
        r = H @ R.T
        best = min(best, np.prod(r.max(axis=0) - r.min(axis=0)))
    return H, area, share.sum(), inside(star, q).sum(), best
