"""A flock with separation, alignment and cohesion.

Source: N. P. Rougier, "From Python to NumPy", section 5.5 (boids).
"""

import numpy as np

sizes = {"small": {"n": 100, "steps": 8}, "large": {"n": 500, "steps": 12}}


def limit(vector, norm):
    length = np.sqrt((vector**2).sum(axis=1, keepdims=True))
    return np.where(length > norm, vector * norm / np.maximum(length, 1e-12), vector)


class Flock:
    def __init__(self, n, seed=3):
        rng = np.random.default_rng(seed)
        angle = 2 * np.pi * rng.random(n)
        self.velocity = np.column_stack((np.cos(angle), np.sin(angle))).astype(np.float32)
        self.position = (np.array([320, 180]) + rng.uniform(-1, 1, (n, 2)) * [150, 80]).astype(np.float32)

    def run(self):
        p, v = self.position, self.velocity
        d = p[:, None] - p[None]
        distance = np.hypot(d[..., 0], d[..., 1])
        apart = (distance > 0) & (distance < 25)
        near = (distance > 0) & (distance < 50)
        m1, m2 = apart[..., None], near[..., None]
        count1 = np.maximum(apart.sum(axis=1), 1)[:, None]
        count2 = np.maximum(near.sum(axis=1), 1)[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            push = np.where(m1, d / (distance**2)[..., None], 0).sum(axis=1) / count1
        align = (m2 * v[None]).sum(axis=1) / count2
        cohere = (m2 * p[None]).sum(axis=1) / count2
        cohere = np.where(near.any(axis=1)[:, None], cohere - p, 0)
        acceleration = np.zeros_like(p)
        for steer, weight in ((push, 1.5), (align, 1.0), (cohere, 1.0)):
            norm = np.sqrt((steer**2).sum(axis=1))[:, None]
            unit = np.divide(steer, norm, out=np.zeros_like(steer), where=norm != 0)
            acceleration += np.float32(weight) * limit(unit * np.float32(2.0) - v, np.float32(0.03)).astype(np.float32)
        self.velocity = limit(v + acceleration, np.float32(2.0))
        self.position = (p + self.velocity) % np.array([640, 360], dtype=np.float32)


def main(n, steps):
    flock = Flock(n)
    for _ in range(steps):
        flock.run()
    return flock.position, flock.velocity
