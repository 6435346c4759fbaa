"""Spheres above a chequered floor, rays for all pixels at once, with shadows and mirrors.

Source: J. Bowman, "rt: a raytracer in NumPy" (excamera.com, 2014).
"""

import numpy as np

sizes = {"small": {"w": 40, "h": 30}, "large": {"w": 240, "h": 180}}

FAR = 1e39


def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def norm(v):
    return v / np.sqrt(dot(v, v))


class Sphere:
    def __init__(self, center, r, color, mirror=0.5, chequered=False):
        self.c, self.r, self.color, self.mirror, self.chequered = np.array(center).reshape(3, 1), r, np.array(color).reshape(3, 1), mirror, chequered

    def intersect(self, O, D):
        b = 2 * dot(D, O - self.c)
        c = dot(self.c, self.c) + dot(O, O) - 2 * dot(self.c, O) - self.r * self.r
        disc = b**2 - 4 * c
        sq = np.sqrt(np.maximum(0, disc))
        h0, h1 = (-b - sq) / 2, (-b + sq) / 2
        h = np.where((h0 > 0) & (h0 < h1), h0, h1)
        return np.where((disc > 0) & (h > 0), h, FAR)

    def colour_at(self, M):
        if not self.chequered:
            return self.color
        checker = (np.floor(M[0] * 2).astype(int) % 2) == (np.floor(M[2] * 2).astype(int) % 2)
        return self.color * checker


def trace(O, D, scene, light, eye, bounce=0):
    distances = [s.intersect(O, D) for s in scene]
    nearest = np.minimum.reduce(distances)
    color = np.zeros((3, D.shape[1]))
    for s, d in zip(scene, distances):
        hit = (nearest != FAR) & (d == nearest)
        if not np.any(hit):
            continue
        o = O[:, hit] if O.shape[1] > 1 else O
        dd = D[:, hit]
        M = o + dd * d[hit]
        N = (M - s.c) / s.r
        toL, toO = norm(light - M), norm(eye - M)
        nudged = M + N * 0.0001
        lit = [t.intersect(nudged, toL) for t in scene]
        seen = lit[scene.index(s)] == np.minimum.reduce(lit)
        c = 0.05 * np.ones((3, 1)) + s.colour_at(M) * np.maximum(dot(N, toL), 0) * seen
        if bounce < 2:
            c = c + trace(nudged, norm(dd - N * 2 * dot(dd, N)), scene, light, eye, bounce + 1) * s.mirror
        c = c + np.clip(dot(N, norm(toL + toO)), 0, 1) ** 50 * seen
        color[:, hit] = c
    return color


def main(w, h):
    light, eye = np.array([[5.0], [5.0], [-10.0]]), np.array([[0.0], [0.35], [-1.0]])
    r = w / h
    x = np.tile(np.linspace(-1, 1, w), h)
    y = np.repeat(np.linspace(1 / r + 0.25, -1 / r + 0.25, h), w)
    scene = [
        Sphere((0.75, 0.1, 1.0), 0.6, (0, 0, 1)),
        Sphere((-0.75, 0.1, 2.25), 0.6, (0.5, 0.223, 0.5)),
        Sphere((-2.75, 0.1, 3.5), 0.6, (1, 0.572, 0.184)),
        Sphere((0, -99999.5, 0), 99999, (0.75, 0.75, 0.75), 0.25, chequered=True),
    ]
    Q = np.stack([x, y, np.zeros_like(x)])
    image = trace(eye, norm(Q - eye), scene, light, eye)
    return np.median(image), np.sort(np.clip(image, 0, 1).sum(axis=0))[:: w * h // 100]
