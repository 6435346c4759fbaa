"""A target followed in space by a Kalman filter of six states, smoothed backward.

Source: R. Labbe, "Kalman and Bayesian Filters in Python", chapters 8 and 13.
"""

import numpy as np

sizes = {"small": {"steps": 60}, "large": {"steps": 3000}}


def main(steps, dt=0.1):
    rng = np.random.default_rng(10)
    F = np.eye(6)
    F[:3, 3:] = dt * np.eye(3)
    H = np.hstack([np.eye(3), np.zeros((3, 3))])
    G = np.vstack([0.5 * dt**2 * np.eye(3), dt * np.eye(3)])
    Q = 0.5 * G @ G.T
    R = 4.0 * np.eye(3)
    truth = np.zeros((steps, 6))
    truth[0, 3:] = [10, 5, 1]
    for k in range(1, steps):
        truth[k] = F @ truth[k - 1] + G @ rng.normal(0, 0.7, 3)
    z = truth[:, :3] + rng.normal(0, 2, (steps, 3))
    x, P = np.zeros(6), 100.0 * np.eye(6)
    xs, Ps = np.empty((steps, 6)), np.empty((steps, 6, 6))
    nis = np.zeros(steps)
    for k in range(steps):
        x = F @ x
        P = F @ P @ F.T + Q
        y = z[k] - H @ x
        S = H @ P @ H.T + R
        K = P @ H.T @ np.linalg.inv(S)
        x = x + K @ y
        I_KH = np.eye(6) - K @ H
        P = I_KH @ P @ I_KH.T + K @ R @ K.T
        nis[k] = y @ np.linalg.solve(S, y)
        xs[k], Ps[k] = x, P
    smooth = xs.copy()
    for k in range(steps - 2, -1, -1):
        ahead = F @ Ps[k] @ F.T + Q
        C = Ps[k] @ F.T @ np.linalg.inv(ahead)
        smooth[k] = xs[k] + C @ (smooth[k + 1] - F @ xs[k])
    rmse = [np.sqrt(np.mean((a[:, :3] - truth[:, :3]) ** 2)) for a in (xs, smooth)]
    return xs, smooth, nis.mean(), rmse


tolerance = 1e-7
