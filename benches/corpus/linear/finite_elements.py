"""Poisson's equation by linear triangles: local matrices for all triangles, assembled with np.add.at, solved.

Source: J. Alberty, C. Carstensen, S. Funken, "Remarks around 50 lines of Matlab" (1999).
"""

import numpy as np

sizes = {"small": {"n": 8}, "large": {"n": 26}}


def main(n):
    x, y = np.meshgrid(np.linspace(0, 1, n + 1), np.linspace(0, 1, n + 1))
    nodes = np.column_stack([x.ravel(), y.ravel()])
    nodes += 0.02 / n * np.sin(7 * nodes[:, ::-1])
    index = np.arange((n + 1) ** 2).reshape(n + 1, n + 1)
    a, b, c, d = index[:-1, :-1].ravel(), index[:-1, 1:].ravel(), index[1:, 1:].ravel(), index[1:, :-1].ravel()
    triangles = np.vstack([np.column_stack([a, b, c]), np.column_stack([a, c, d])])
    p = nodes[triangles]
    edges = np.stack([p[:, 2] - p[:, 1], p[:, 0] - p[:, 2], p[:, 1] - p[:, 0]], axis=1)
    area = 0.5 * np.abs(edges[:, 0, 0] * edges[:, 1, 1] - edges[:, 0, 1] * edges[:, 1, 0])
    local = np.einsum("tid,tjd->tij", edges, edges) / (4 * area[:, None, None])
    K = np.zeros((len(nodes), len(nodes)))
    rows = np.repeat(triangles, 3, axis=1)
    cols = np.tile(triangles, (1, 3))
    np.add.at(K, (rows.ravel(), cols.ravel()), local.reshape(len(triangles), 9).ravel())
    middle = p.mean(axis=1)
    f = 2 * np.pi**2 * np.sin(np.pi * middle[:, 0]) * np.sin(np.pi * middle[:, 1])
    load = np.bincount(triangles.ravel(), weights=np.repeat(f * area / 3, 3), minlength=len(nodes))
    boundary = np.unique(np.concatenate([index[0], index[-1], index[:, 0], index[:, -1]]))
    free = np.setdiff1d(np.arange(len(nodes)), boundary)
    u = np.zeros(len(nodes))
    u[free] = np.linalg.solve(K[np.ix_(free, free)], load[free])
    gradient = np.einsum("tid,ti->td", edges[:, :, ::-1] * [1, -1], u[triangles]) / (2 * area[:, None])
    return u, np.abs(gradient), 0.5 * u @ K @ u, area.sum()
