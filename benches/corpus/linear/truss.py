"""A roof of bars: stiffness matrices of four by four put together bar by bar, loads, forces, and vibration.

Source: A. Kassimali, "Matrix Analysis of Structures", chapter 3; civil-engineering course codes.
"""

import numpy as np

sizes = {"small": {"bays": 6}, "large": {"bays": 120}}


def main(bays, E=210e9, A=1e-3, rho=7850.0):
    bottom = np.column_stack([np.arange(bays + 1), np.zeros(bays + 1)])
    top = np.column_stack([np.arange(bays) + 0.5, np.full(bays, 0.9)])
    nodes = np.vstack([bottom, top])
    b = bays + 1
    bars = [(i, i + 1) for i in range(bays)] + [(b + i, b + i + 1) for i in range(bays - 1)]
    bars += [(i, b + i) for i in range(bays)] + [(i + 1, b + i) for i in range(bays)]
    dofs = 2 * len(nodes)
    K, M = np.zeros((dofs, dofs)), np.zeros((dofs, dofs))
    for i, j in bars:
        d = nodes[j] - nodes[i]
        L = np.sqrt(d @ d)
        c, s = d / L
        k = np.array([[c * c, c * s], [c * s, s * s]])
        ke = E * A / L * np.block([[k, -k], [-k, k]])
        where = np.array([2 * i, 2 * i + 1, 2 * j, 2 * j + 1])
        K[np.ix_(where, where)] += ke
        M[where, where] += rho * A * L / 2
    fixed = [0, 1, 2 * bays + 1]
    free = np.setdiff1d(np.arange(dofs), fixed)
    f = np.zeros(dofs)
    f[2 * b + 1 :: 2] = -1000.0
    u = np.zeros(dofs)
    u[free] = np.linalg.solve(K[np.ix_(free, free)], f[free])
    forces = []
    for i, j in bars:
        d = nodes[j] - nodes[i]
        L = np.hypot(*d)
        forces.append(E * A / L * (d / L) @ (u[2 * j : 2 * j + 2] - u[2 * i : 2 * i + 2]))
    m = np.sqrt(np.diag(M)[free])
    frequencies = np.sqrt(np.linalg.eigvalsh(K[np.ix_(free, free)] / np.outer(m, m))[:6]) / (2 * np.pi)
    return u, np.array(forces), K @ u - f, frequencies


tolerance = 1e-5
