"""Hamming's code of 4 bits in 7: coding, a channel that turns bits over, syndromes, and corrections in place.

Source: R. Hamming, "Error detecting and error correcting codes", 1950; MIT 6.02, lecture notes on linear block codes.
"""

import numpy as np

sizes = {"small": {"bytes": 500}, "large": {"bytes": 200_000}}


def main(bytes):
    rng = np.random.default_rng(1)
    message = rng.integers(0, 256, bytes, dtype=np.uint8)
    generator = np.array([[1, 1, 0, 1], [1, 0, 1, 1], [1, 0, 0, 0], [0, 1, 1, 1], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=np.uint8)
    check = np.array([[1, 0, 1, 0, 1, 0, 1], [0, 1, 1, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1, 1]], dtype=np.uint8)
    words = np.unpackbits(message).reshape(-1, 4) @ generator.T % 2
    sent = words.copy()
    place = rng.integers(0, 10, len(words))
    hurt = place < 7
    words[np.flatnonzero(hurt), place[hurt]] ^= 1
    syndrome = (words @ check.T % 2) @ np.array([1, 2, 4], dtype=np.uint8)
    wrong = np.nonzero(syndrome)[0]
    words[wrong, syndrome[wrong] - 1] ^= 1
    decoded = np.packbits(words[:, [2, 4, 5, 6]].ravel())
    distance = (words != sent).sum()
    weights = np.bincount(sent.sum(axis=1, dtype=np.int64), minlength=8)
    return decoded, distance, wrong.size, weights, np.bitwise_xor.reduce(decoded), np.array_equal(decoded, message)
