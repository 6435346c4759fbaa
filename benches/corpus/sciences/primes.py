"""Primes by a sieve, the twins among them, Goldbach's counts, and powers modulo a number for tests and RSA.

Source: "Hitchhiker's" NumPy sieve from Stack Overflow; R. Crandall, C. Pomerance, "Prime Numbers", chapter 3.
"""

import numpy as np

sizes = {"small": {"n": 5000}, "large": {"n": 1_500_000}}


def sieve(n):
    is_prime = np.ones(n + 1, dtype=bool)
    is_prime[:2] = False
    is_prime[4::2] = False
    for i in range(3, int(n**0.5) + 1, 2):
        if is_prime[i]:
            is_prime[i * i :: 2 * i] = False
    return is_prime


def power(base, exponent, modulus):
    result = np.ones_like(base)
    base = base % modulus
    while exponent > 0:
        if exponent & 1:
            result = result * base % modulus
        base = base * base % modulus
        exponent >>= 1
    return result


def main(n):
    mask = sieve(n)
    primes = np.flatnonzero(mask)
    gaps = np.diff(primes)
    twins = primes[:-1][gaps == 2]
    hist = np.bincount(gaps)
    evens = np.arange(4, 400, 2)
    small = primes[primes < 400]
    sums = np.add.outer(small, small)
    goldbach = np.array([np.count_nonzero(np.triu(sums == e)) for e in evens])
    modulus, e, d = 3233, 17, 413
    message = np.arange(n // 10) % modulus
    cipher = power(message, e, modulus)
    back = power(cipher, d, modulus)
    fermat = power(np.full(50, 2), 560, 561)
    pi = np.cumsum(mask)[np.array([100, 1000, n])]
    return primes[-100:], twins.size, hist, goldbach, cipher, (back == message).all(), fermat[0], pi
