"""The Kelvin-Helmholtz instability by a second-order finite-volume method with Rusanov's flux on a periodic grid.

Source: P. Mocz, "Create Your Own Finite Volume Fluid Simulation (With Python)" (2020).
"""

import numpy as np

sizes = {"small": {"n": 48, "steps": 6}, "large": {"n": 256, "steps": 12}}

R, L = -1, 1


def conserved(rho, vx, vy, p, gamma, vol):
    return rho * vol, rho * vx * vol, rho * vy * vol, (p / (gamma - 1) + 0.5 * rho * (vx**2 + vy**2)) * vol


def primitive(mass, momx, momy, energy, gamma, vol):
    rho = mass / vol
    vx = momx / rho / vol
    vy = momy / rho / vol
    return rho, vx, vy, (energy / vol - 0.5 * rho * (vx**2 + vy**2)) * (gamma - 1)


def gradient(f, dx):
    return (np.roll(f, R, axis=0) - np.roll(f, L, axis=0)) / (2 * dx), (np.roll(f, R, axis=1) - np.roll(f, L, axis=1)) / (2 * dx)


def to_faces(f, fx, fy, dx):
    xl = np.roll(f - fx * dx / 2, R, axis=0)
    yl = np.roll(f - fy * dx / 2, R, axis=1)
    return xl, f + fx * dx / 2, yl, f + fy * dx / 2


def flux(rl, rr, vxl, vxr, vyl, vyr, pl, pr, gamma):
    el = pl / (gamma - 1) + 0.5 * rl * (vxl**2 + vyl**2)
    er = pr / (gamma - 1) + 0.5 * rr * (vxr**2 + vyr**2)
    rho, momx, momy, en = 0.5 * (rl + rr), 0.5 * (rl * vxl + rr * vxr), 0.5 * (rl * vyl + rr * vyr), 0.5 * (el + er)
    p = (gamma - 1) * (en - 0.5 * (momx**2 + momy**2) / rho)
    c = np.maximum(np.sqrt(gamma * pl / rl) + np.abs(vxl), np.sqrt(gamma * pr / rr) + np.abs(vxr))
    return (
        momx - c * 0.5 * (rl - rr),
        momx**2 / rho + p - c * 0.5 * (rl * vxl - rr * vxr),
        momx * momy / rho - c * 0.5 * (rl * vyl - rr * vyr),
        (en + p) * momx / rho - c * 0.5 * (el - er),
    )


def main(n, steps, gamma=5 / 3):
    dx = 1.0 / n
    vol = dx**2
    xlin = np.linspace(0.5 * dx, 1 - 0.5 * dx, n)
    Y, X = np.meshgrid(xlin, xlin)
    s = 0.05 / np.sqrt(2.0)
    rho = 1.0 + (np.abs(Y - 0.5) < 0.25)
    vx = -0.5 + (np.abs(Y - 0.5) < 0.25)
    vy = 0.1 * np.sin(4 * np.pi * X) * (np.exp(-((Y - 0.25) ** 2) / (2 * s**2)) + np.exp(-((Y - 0.75) ** 2) / (2 * s**2)))
    q = conserved(rho, vx, vy, 2.5 * np.ones(X.shape), gamma, vol)
    for _ in range(steps):
        rho, vx, vy, p = primitive(*q, gamma, vol)
        dt = 0.4 * np.min(dx / (np.sqrt(gamma * p / rho) + np.sqrt(vx**2 + vy**2)))
        faces = [to_faces(f, *gradient(f, dx), dx) for f in (rho, vx, vy, p)]
        (rxl, rxr, ryl, ryr), (uxl, uxr, uyl, uyr), (wxl, wxr, wyl, wyr), (pxl, pxr, pyl, pyr) = faces
        fx = flux(rxl, rxr, uxl, uxr, wxl, wxr, pxl, pxr, gamma)
        gm, gy, gx, ge = flux(ryl, ryr, wyl, wyr, uyl, uyr, pyl, pyr, gamma)
        q = [a - dt * dx * (f - np.roll(f, L, axis=0)) - dt * dx * (g - np.roll(g, L, axis=1)) for a, f, g in zip(q, fx, (gm, gx, gy, ge))]
    return q
