"""The ChaCha20 stream cipher on many blocks at once, in words of 32 bits with rotations.

Source: D. Bernstein, "ChaCha, a variant of Salsa20" (2008); RFC 8439.
"""

import numpy as np

sizes = {"small": {"blocks": 64}, "large": {"blocks": 8192}}


def rotate(x, n):
    return (x << np.uint32(n)) | (x >> np.uint32(32 - n))


def quarter(s, a, b, c, d):
    s[a] += s[b]
    s[d] = rotate(s[d] ^ s[a], 16)
    s[c] += s[d]
    s[b] = rotate(s[b] ^ s[c], 12)
    s[a] += s[b]
    s[d] = rotate(s[d] ^ s[a], 8)
    s[c] += s[d]
    s[b] = rotate(s[b] ^ s[c], 7)


def main(blocks):
    constants = np.frombuffer(b"expand 32-byte k", dtype="<u4")
    key = np.frombuffer(bytes(range(32)), dtype="<u4")
    nonce = np.frombuffer(bytes.fromhex("000000090000004a00000000"), dtype="<u4")
    state = np.empty((16, blocks), dtype=np.uint32)
    state[0:4] = constants[:, None]
    state[4:12] = key[:, None]
    state[12] = np.arange(1, blocks + 1, dtype=np.uint32)
    state[13:16] = nonce[:, None]
    work = state.copy()
    for _ in range(10):
        for a, b, c, d in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15), (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
            quarter(work, a, b, c, d)
    work += state
    stream = work.T.copy().view(np.uint8).reshape(-1)
    plain = np.tile(np.frombuffer(b"Ladies and Gentlemen of the class of '99", dtype=np.uint8), stream.size // 40 + 1)[: stream.size]
    cipher = plain ^ stream
    return cipher, np.array_equal(cipher ^ stream, plain), np.bincount(cipher, minlength=256)
