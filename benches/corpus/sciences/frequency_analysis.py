"""Caesar's and Vigenère's ciphers broken by the frequencies of letters.

Source: S. Singh, "The Code Book", chapter 2; programming-course exercises.
"""

import numpy as np

sizes = {"small": {"repeat": 4}, "large": {"repeat": 1500}}

ENGLISH = np.array([8.2, 1.5, 2.8, 4.3, 12.7, 2.2, 2.0, 6.1, 7.0, 0.15, 0.77, 4.0, 2.4, 6.7, 7.5, 1.9, 0.1, 6.0, 6.3, 9.1, 2.8, 0.98, 2.4, 0.15, 2.0, 0.07])
TEXT = "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the season of light, it was the season of darkness. "


def letters(text):
    codes = np.frombuffer(text.lower().encode(), dtype=np.uint8)
    return codes[(codes >= ord("a")) & (codes <= ord("z"))].astype(np.int64) - ord("a")


def best_shift(x):
    counts = np.bincount(x, minlength=26)
    shifted = np.stack([np.roll(counts, -s) for s in range(26)])
    expected = ENGLISH / ENGLISH.sum() * len(x)
    return int(np.argmin(((shifted - expected) ** 2 / expected).sum(axis=1)))


def main(repeat):
    plain = letters(TEXT * repeat)
    key = letters("lemon")
    cipher = (plain + np.resize(key, plain.size)) % 26
    coincidence = np.zeros(12)
    for period in range(1, 13):
        columns = [np.bincount(cipher[i::period], minlength=26) for i in range(period)]
        coincidence[period - 1] = np.mean([(c * (c - 1)).sum() / (c.sum() * (c.sum() - 1)) for c in columns])
    period = int(np.argmax(coincidence > 0.06)) + 1
    found = np.array([best_shift(cipher[i::period]) for i in range(period)])
    restored = (cipher - np.resize(found, cipher.size)) % 26
    words = "".join(chr(c + ord("a")) for c in restored[:40].tolist())
    pairs = np.zeros((26, 26), dtype=int)
    np.add.at(pairs, (restored[:-1], restored[1:]), 1)
    return coincidence, found, words, pairs, (restored == plain).mean()
