"""Places of planets at many times: Kepler's equation by Newton's method until all settle, and rotations into space.

Source: J. Meeus, "Astronomical Algorithms", chapters 30 and 33; JPL's "Keplerian elements for approximate positions".
"""

import numpy as np

sizes = {"small": {"days": 400}, "large": {"days": 40_000}}

ELEMENTS = np.array(
    [
        [0.38709927, 0.20563593, 7.00497902, 252.25032350, 77.45779628, 48.33076593, 149472.67411175],
        [0.72333566, 0.00677672, 3.39467605, 181.97909950, 131.60246718, 76.67984255, 58517.81538729],
        [1.00000261, 0.01671123, -0.00001531, 100.46457166, 102.93768193, 0.0, 35999.37244981],
        [1.52371034, 0.09339410, 1.84969142, -4.55343205, -23.94362959, 49.55953891, 19140.30268499],
        [5.20288700, 0.04838624, 1.30439695, 34.39644051, 14.72847983, 100.47390909, 3034.74612775],
    ]
)


def main(days):
    T = np.arange(days) / 36525
    a, e, I, L0, peri, node, rate = ELEMENTS.T[:, :, None]
    M = np.deg2rad((L0 + rate * T - peri + 180) % 360 - 180)
    E = M + e * np.sin(M)
    delta = np.inf
    while delta > 1e-12:
        step = (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
        E = E - step
        delta = np.abs(step).max()
    x, y = a * (np.cos(E) - e), a * np.sqrt(1 - e**2) * np.sin(E)
    w, O, i = np.deg2rad(peri - node), np.deg2rad(node), np.deg2rad(I)
    X = (np.cos(w) * np.cos(O) - np.sin(w) * np.sin(O) * np.cos(i)) * x + (-np.sin(w) * np.cos(O) - np.cos(w) * np.sin(O) * np.cos(i)) * y
    Y = (np.cos(w) * np.sin(O) + np.sin(w) * np.cos(O) * np.cos(i)) * x + (-np.sin(w) * np.sin(O) + np.cos(w) * np.cos(O) * np.cos(i)) * y
    Z = np.sin(w) * np.sin(i) * x + np.cos(w) * np.sin(i) * y
    r = np.stack([X, Y, Z], axis=-1)
    geocentric = r - r[2]
    distance = np.linalg.norm(geocentric, axis=-1)
    mars = np.unwrap(np.arctan2(geocentric[3, :, 1], geocentric[3, :, 0]))
    retrograde = np.diff(mars) < 0
    closest = np.flatnonzero((distance[3, 1:-1] < distance[3, :-2]) & (distance[3, 1:-1] < distance[3, 2:])) + 1
    return r, distance[[0, 1, 3, 4]].min(axis=1), retrograde.sum(), closest


tolerance = 1e-8
