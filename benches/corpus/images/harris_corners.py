"""Harris's corners of an image, the strongest ones some distance apart, and patches around them compared.

Source: C. Harris, M. Stephens (1988); J. E. Solem, "Programming Computer Vision with Python", chapter 2.
"""

import numpy as np

sizes = {"small": {"n": 64}, "large": {"n": 400}}


def blur(a, sigma=1.5):
    r = int(3 * sigma)
    k = np.exp(-(np.arange(-r, r + 1) ** 2) / (2 * sigma**2))
    k /= k.sum()
    a = np.apply_along_axis(lambda m: np.convolve(m, k, mode="same"), 0, a)
    return np.apply_along_axis(lambda m: np.convolve(m, k, mode="same"), 1, a)


def main(n, wid=4, count=40):
    rng = np.random.default_rng(2)
    image = np.kron(rng.integers(0, 2, (n // 16, n // 16)), np.ones((16, 16))) * 200.0
    image += rng.normal(0, 3, image.shape)
    iy, ix = np.gradient(image)
    wxx, wxy, wyy = blur(ix * ix), blur(ix * iy), blur(iy * iy)
    response = (wxx * wyy - wxy**2) / (wxx + wyy + 1e-6)
    candidates = np.argwhere(response > 0.1 * response.max())
    values = response[candidates[:, 0], candidates[:, 1]]
    allowed = np.zeros(response.shape, dtype=bool)
    allowed[wid + 1 : -wid - 1, wid + 1 : -wid - 1] = True
    found = []
    for i in np.argsort(values)[::-1]:
        r, c = candidates[i]
        if allowed[r, c]:
            found.append((int(r), int(c)))
            allowed[max(r - 5, 0) : r + 6, max(c - 5, 0) : c + 6] = False
            if len(found) == count:
                break
    patches = np.array([image[r - wid : r + wid + 1, c - wid : c + wid + 1].flatten() for r, c in found])
    normed = (patches - patches.mean(axis=1, keepdims=True)) / patches.std(axis=1, keepdims=True)
    ncc = normed @ normed.T / patches.shape[1]
    return response, np.array(found), ncc
