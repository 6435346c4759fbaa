"""Attitudes from rates of rotation: quaternions multiplied step by step, interpolated, turned into matrices and angles.

Source: J. Diebel, "Representing Attitude" (2006); K. Shoemake, "Animating Rotation with Quaternion Curves" (1985).
"""

import numpy as np

sizes = {"small": {"bodies": 20, "steps": 50}, "large": {"bodies": 2000, "steps": 300}}


def multiply(p, q):
    w0, x0, y0, z0 = np.moveaxis(p, -1, 0)
    w1, x1, y1, z1 = np.moveaxis(q, -1, 0)
    return np.stack(
        [
            w0 * w1 - x0 * x1 - y0 * y1 - z0 * z1,
            w0 * x1 + x0 * w1 + y0 * z1 - z0 * y1,
            w0 * y1 - x0 * z1 + y0 * w1 + z0 * x1,
            w0 * z1 + x0 * y1 - y0 * x1 + z0 * w1,
        ],
        axis=-1,
    )


def matrices(q):
    w, x, y, z = q.T
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    ).transpose(2, 0, 1)


def main(bodies, steps, dt=0.01):
    rng = np.random.default_rng(9)
    q = np.tile([1.0, 0, 0, 0], (bodies, 1))
    inertia = np.array([1.0, 2.0, 3.0])
    omega = rng.normal(0, 1, (bodies, 3))
    momentum0 = np.linalg.norm(inertia * omega, axis=1)
    for _ in range(steps):
        omega = omega + dt * np.cross(inertia * omega, omega) / inertia
        angle = np.linalg.norm(omega, axis=1, keepdims=True) * dt
        axis = omega / np.maximum(np.linalg.norm(omega, axis=1, keepdims=True), 1e-12)
        q = multiply(q, np.concatenate([np.cos(angle / 2), np.sin(angle / 2) * axis], axis=1))
        q /= np.linalg.norm(q, axis=1)[:, None]
    R = matrices(q)
    yaw = np.arctan2(R[:, 1, 0], R[:, 0, 0])
    pitch = -np.arcsin(np.clip(R[:, 2, 0], -1, 1))
    target = np.roll(q, 1, axis=0)
    dots = np.einsum("bi,bi->b", q, target)
    target = np.where(dots[:, None] < 0, -target, target)
    theta = np.arccos(np.clip(np.abs(dots), 0, 1))
    s = np.linspace(0, 1, 5)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        slerp = (np.sin((1 - s) * theta)[..., None] * q + np.sin(s * theta)[..., None] * target) / np.sin(theta)[:, None]
    drift = np.linalg.norm(inertia * omega, axis=1) / momentum0
    return R, yaw, pitch, slerp, drift


tolerance = 1e-7
