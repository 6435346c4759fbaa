"""Random calls of methods on the stack of the environment, compared with NumPy's: `python random_methods.py FIRST COUNT [KIND...]` prints
what differs, and at last how many calls there were. Sizes lie on both sides of what fits a group of the device."""

import os
import random
import sys

import numpy

os.environ["BH_LINALG"] = "stack"
import bh  # noqa: E402

LENGTHS = [1, 2, 3, 4, 5, 7, 8, 11, 13, 15, 16, 17, 19, 23, 30, 31, 32, 33, 60, 64, 97, 100, 121, 127, 128, 129, 169, 250, 251, 256, 257, 360, 509, 512, 1000, 1009]
LONG = [1024, 1025, 1155, 2047, 2048, 2049, 3000, 4096, 4099, 5005, 8192, 10000, 16384, 20000]
TYPES = "f8 f4 i8 i4 i2 i1 u8 u4 u1 ?".split()


class Calls:
    """The random sources that calls draw their arguments from."""

    def __init__(self, seed):
        self.source = random.Random(seed)
        self.rng = numpy.random.default_rng(seed)

    def length(self):
        return self.source.choice(LONG if self.source.random() < 0.2 else LENGTHS)

    def shape(self, length):
        """A shape of up to three dimensions, of which one has this length, and that one's axis."""
        most = max(1, 20000 // length)
        shape = [self.source.randint(1, min(6, most)) for _ in range(self.source.choice([0, 0, 1, 1, 2]))]
        if shape and self.source.random() < 0.2:
            shape[-1] = min(most, self.source.choice([17, 40, 130]))
        axis = self.source.randint(0, len(shape))
        return (*shape[:axis], length, *shape[axis:]), axis

    def values(self, shape, kind):
        """Values of a type, many of them equal, and of floating-point types some that are special."""
        kind = numpy.dtype(kind)
        if kind.kind == "b":
            return self.rng.random(shape) < self.source.choice([0.5, 0.02, 0.98])
        few = self.source.random() < 0.5
        if kind.kind in "iu":
            bounds = numpy.iinfo(kind)
            low, high = (max(bounds.min, -3), 4) if few else (bounds.min, bounds.max)
            return self.rng.integers(low, high, shape, kind, endpoint=True)
        values = self.rng.integers(-3, 4, shape).astype(kind) if few else self.rng.standard_normal(shape).astype(kind) * kind.type(10) ** self.source.randint(-3, 3)
        if self.source.random() < 0.5:
            for value in (numpy.nan, -numpy.nan, numpy.inf, -numpy.inf, 0.0, -0.0, 1e-310 if kind.itemsize == 8 else 1e-40):
                values[self.rng.random(shape) < 0.05] = value
        return values

    def laid(self, host):
        """The host's array, and the same of bh in some layout."""
        way = self.source.choice(["dense", "dense", "turned", "gaps", "backward"])
        if way == "turned":
            return bh.array(numpy.ascontiguousarray(host.T)).T
        if way == "gaps":
            wide = bh.zeros((*host.shape[:-1], 2 * host.shape[-1] + 1), host.dtype)
            wide[..., 1::2] = bh.array(host)
            return wide[..., 1::2]
        return bh.array(host[..., ::-1].copy())[..., ::-1] if way == "backward" else bh.array(host)

    def fft(self):
        shape, axis = self.shape(self.length())
        name, kind = self.source.choice(["fft", "ifft"]), self.source.choice(["c16", "c8", "f8", "f4"])
        real = self.rng.standard_normal(shape)
        host = (real + 1j * self.rng.standard_normal(shape)).astype(kind) if kind[0] == "c" else real.astype(kind)
        found = getattr(bh.fft, name)(self.laid(host), axis=axis)
        wanted = getattr(numpy.fft, name)(host.astype("c16"), axis=axis)
        bound = (1e-13 if kind in ("c16", "f8") else 3e-6) * numpy.log2(shape[axis] + 2)
        error = numpy.abs(numpy.asarray(found) - wanted).max() / max(1e-300, numpy.sqrt((numpy.abs(wanted) ** 2).mean()))
        return f"{name} {shape} {axis} {kind}", error <= bound, error

    def real_fft(self):
        shape, axis = self.shape(self.length())
        name, kind, bound = self.source.choice(["rfft", "irfft"]), *self.source.choice([("f8", 1e-13), ("f4", 3e-6)])
        host, size = self.rng.standard_normal(shape).astype(kind), shape[axis]
        if name == "irfft":
            size = max(1, size - self.source.choice([0, 1]))
            # The imaginary part of an element without a partner in the other half does not count.
            host = (host + 1j * self.rng.standard_normal(shape)).astype("c16" if kind == "f8" else "c8")
        found = numpy.asarray(getattr(bh.fft, name)(self.laid(host), size, axis))
        wanted = getattr(numpy.fft, name)(host.astype("f8" if name == "rfft" else "c16"), size, axis)
        error = numpy.abs(found - wanted).max() / max(1e-300, numpy.sqrt((numpy.abs(wanted) ** 2).mean()))
        is_alike = found.dtype == getattr(numpy.fft, name)(host, size, axis).dtype and found.shape == wanted.shape
        return f"{name} {shape} {axis} {kind} {size}", is_alike and error <= bound * numpy.log2(size + 2), error

    def sort(self):
        shape, axis = self.shape(self.length())
        host = self.values(shape, self.source.choice(TYPES))
        found = numpy.asarray(bh.sort(self.laid(host), axis=axis))
        wanted = numpy.sort(host, axis=axis)
        if host.dtype.kind == "f":
            # Zeros and what is no number have an order by their bits.
            whole = f"i{host.dtype.itemsize}"
            bits = host.view(whole)
            order = numpy.where(bits < 0, bits ^ numpy.iinfo(whole).max, bits)
            order = numpy.lexsort((order, numpy.isnan(host)), axis=axis)
            found, wanted = found.view(whole), numpy.take_along_axis(bits, order, axis)
        return f"sort {shape} {axis} {host.dtype}", numpy.array_equal(found, wanted), None

    def selected(self):
        """Some elements of sorted lines of which the others are not read."""
        shape = (self.source.randint(1, 3), self.source.choice([1 << 14, 20_000, 50_001]))
        host = self.values(shape, self.source.choice(TYPES))
        positions = [self.source.randrange(-shape[1], shape[1]) for _ in range(self.source.randint(1, 5))]
        laid = self.laid(host)
        turned = self.source.random() < 0.3

        def made():
            ordered = bh.sort(laid.T, axis=0).T if turned else bh.sort(laid, axis=1)
            return [ordered[:, at].copy() for at in positions]

        found, wanted = numpy.asarray(bh.stack(made())), numpy.sort(host, axis=1)[:, positions].T
        if host.dtype.kind == "f":
            zeros = (numpy.asarray(found) == 0) & (wanted == 0)
            found = numpy.where(zeros, wanted, found)
        return f"selected {shape} {positions} {host.dtype}", numpy.array_equal(found, wanted, equal_nan=host.dtype.kind == "f"), None

    def argsort(self):
        shape, axis = self.shape(self.length())
        host = self.values(shape, self.source.choice(TYPES))
        found = numpy.asarray(bh.argsort(self.laid(host), axis=axis, kind="stable"))
        return f"argsort {shape} {axis} {host.dtype}", numpy.array_equal(found, numpy.argsort(host, axis=axis, kind="stable")), None

    def searchsorted(self):
        kind, side = self.source.choice(TYPES), self.source.choice(["left", "right"])
        among, values = numpy.sort(self.values((self.length(),), kind)), self.values(self.shape(self.source.choice(LENGTHS))[0], kind)
        found = numpy.asarray(bh.searchsorted(self.laid(among), self.laid(values), side))
        return f"searchsorted {among.shape} {values.shape} {kind} {side}", numpy.array_equal(found, numpy.searchsorted(among, values, side)), None

    def choose(self):
        shape, _ = self.shape(self.length())
        mask, host = self.values(shape, "?"), self.values(shape, self.source.choice([*TYPES, "f8", "f4"]))
        chosen = self.laid(mask)
        pairs = [(self.laid(host)[chosen], host[mask]), (bh.flatnonzero(chosen), numpy.flatnonzero(mask)), (bh.count_nonzero(chosen), numpy.count_nonzero(mask))]
        return f"choose {shape} {host.dtype}", all(numpy.array_equal(numpy.asarray(a).view(b.dtype if hasattr(b, "dtype") else None), b, equal_nan=getattr(b, "dtype", mask.dtype).kind == "f") for a, b in pairs), None

    def linear(self):
        n = self.source.choice([1, 2, 3, 5, 15, 16, 17, 31, 32, 33, 47, 48, 64, 65, 100])
        kind, sides = self.source.choice(["f8", "f4"]), self.source.choice([None, None, 1, 3, 40])
        name = self.source.choice(["solve", "inv", "det", "cholesky", "singular", "definite"])
        a = (self.rng.standard_normal((n, n)) + 3 * numpy.sqrt(n) * numpy.eye(n)[self.rng.permutation(n)]).astype(kind)
        b = self.rng.standard_normal((n,) if sides is None else (n, sides)).astype(kind)
        bound = 1e-10 if kind == "f8" else 2e-3
        close = lambda found, wanted: bool(numpy.allclose(numpy.asarray(found), wanted, rtol=bound, atol=bound * max(1e-30, numpy.abs(wanted).max())))
        if name == "solve":
            right = close(bh.linalg.solve(self.laid(a), self.laid(b)), numpy.linalg.solve(a, b))
        elif name == "inv":
            right = close(bh.linalg.inv(self.laid(a)), numpy.linalg.inv(a))
        elif name == "det":
            right = close(bh.linalg.det(self.laid(a)), numpy.linalg.det(a))
        elif name == "cholesky":
            a = (a @ a.T / n + numpy.eye(n, dtype=kind)).astype(kind)
            right = close(bh.linalg.cholesky(self.laid(a)), numpy.linalg.cholesky(a))
        else:
            a = a @ a.T
            if name == "singular":
                a[n // 2] = 0
            else:
                a[n - 1, n - 1] = -1
            try:
                (bh.linalg.solve if name == "singular" else bh.linalg.cholesky)(self.laid(a), *([self.laid(b)] if name == "singular" else []))
                right = False
            except numpy.linalg.LinAlgError:
                right = True
        return f"{name} {n} {kind} {sides}", right, None


    def stacked(self):
        """Factors of stacks of matrices, which may be one call each or one for many."""
        n, count = self.source.choice([1, 2, 3, 5, 8, 16, 17, 31, 32, 40, 70, 90]), self.source.choice([1, 3, 15, 16, 17, 40, 700])
        count = min(count, 40) if n > 16 else count
        kind, sides = self.source.choice(["f8", "f4"]), self.source.choice([1, 3, 20])
        name = self.source.choice(["solve", "inv", "det", "cholesky", "shared", "singular", "eigh", "svd"])
        shape = (2, count // 2, n, n) if count % 2 == 0 and self.source.random() < 0.3 else (count, n, n)
        a = (self.rng.standard_normal(shape) + 3 * numpy.sqrt(n) * numpy.eye(n)[self.rng.permutation(n)]).astype(kind)
        b = self.rng.standard_normal((*shape[:-1], sides)).astype(kind)
        bound = 1e-10 if kind == "f8" else 2e-3
        close = lambda found, wanted: bool(numpy.allclose(numpy.asarray(found), wanted, rtol=bound, atol=bound * max(1e-30, numpy.abs(wanted).max())))
        if name == "solve":
            right = close(bh.linalg.solve(self.laid(a), self.laid(b)), numpy.linalg.solve(a, b))
        elif name == "shared":
            right = close(bh.linalg.solve(self.laid(a[..., :1, :, :]), self.laid(b)), numpy.linalg.solve(a[..., :1, :, :], b))
        elif name in ("inv", "det"):
            right = close(getattr(bh.linalg, name)(self.laid(a)), getattr(numpy.linalg, name)(a))
        elif name == "cholesky":
            a = (a @ numpy.swapaxes(a, -1, -2) / n + numpy.eye(n, dtype=kind)).astype(kind)
            right = close(bh.linalg.cholesky(self.laid(a)), numpy.linalg.cholesky(a))
        elif name == "eigh":
            a = (a + numpy.swapaxes(a, -1, -2)).astype(kind)
            values, vectors = map(numpy.asarray, bh.linalg.eigh(self.laid(a)))
            right = close(values, numpy.linalg.eigvalsh(a)) and close((vectors * values[..., None, :]) @ numpy.swapaxes(vectors, -1, -2), a)
        elif name == "svd":
            u, values, vh = map(numpy.asarray, bh.linalg.svd(self.laid(a)))
            right = close(values, numpy.linalg.svd(a, compute_uv=False)) and close((u * values[..., None, :]) @ vh, a)
        else:
            a[(0,) * (a.ndim - 2)][n // 2] = 0
            try:
                bh.linalg.solve(self.laid(a), self.laid(b))
                right = False
            except numpy.linalg.LinAlgError:
                right = True
        return f"{name} of {shape} {kind} {sides}", right, None

    def orthogonal(self):
        m, n = (self.source.choice([1, 2, 5, 15, 16, 17, 33, 64, 100, 260]) for _ in range(2))
        kind, mode = self.source.choice(["f8", "f8", "f4"]), self.source.choice(["reduced", "complete", "r"])
        a = self.rng.standard_normal((m, n)).astype(kind)
        if mode != "r" and self.source.random() < 0.3:
            a[:, self.source.randrange(n)] = 0
            a[self.source.randrange(m) :] *= kind == "f8" and 1e180 or 1e18
        bound = (1e-13 if kind == "f8" else 1e-5) * (m + n)
        size, found = numpy.abs(a).max() or 1, bh.linalg.qr(self.laid(a), mode)
        q, r = numpy.linalg.qr(a) if mode == "r" else map(numpy.asarray, found)
        r = numpy.asarray(found) if mode == "r" else r
        unit = numpy.abs(q.T @ q - numpy.eye(q.shape[1])).max() <= bound
        return f"qr {m} {n} {kind} {mode}", unit and numpy.abs(q @ (r / size) - a / size).max() <= bound and not numpy.tril(r, -1).any(), None

    def product(self):
        m, k, n = (self.source.choice([1, 2, 5, 16, 63, 64, 100, 128, 130, 257]) for _ in range(3))
        kind = self.source.choice(["f8", "f8", "f4"])
        a, b = self.rng.standard_normal((m, k)).astype(kind), self.rng.standard_normal((k, n)).astype(kind)
        wanted, bound = a @ b, (1e-14 if kind == "f8" else 1e-5) * k
        return f"product {m} {k} {n} {kind}", numpy.abs(numpy.asarray(self.laid(a) @ self.laid(b)) - wanted).max() <= bound * 10, None

    def distances(self):
        """Of points to some centres, which may lie in a table."""
        d, k = self.source.choice([1, 2, 3, 7, 16]), self.source.choice([1, 2, 5, 13, 30, 64])
        n, kind = self.source.choice([3, 300, 2000, 5000]), self.source.choice(["f8", "f4", "i4"])
        points, centres = self.values((n, d), "i2").astype(kind) % 50, self.values((k, d), "i2").astype(kind) % 50
        apart = lambda points, centres: ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        found = numpy.asarray(apart(self.laid(points), self.laid(centres)))
        return f"distances {n} {k} {d} {kind}", numpy.array_equal(found, apart(points, centres)), None


KINDS = "fft real_fft sort selected argsort searchsorted choose linear stacked orthogonal product distances".split()


def check(seed):
    """The call of a seed: what it is, and how far off if its result is wrong."""
    calls = Calls(seed)
    with numpy.errstate(all="ignore"):
        text, right, error = getattr(calls, calls.source.choice(KINDS))()
    return text, right, error


if __name__ == "__main__":
    first, count = map(int, sys.argv[1:3])
    KINDS = sys.argv[3:] or KINDS
    wrong = 0
    for seed in range(first, first + count):
        try:
            text, right, error = check(seed)
        except Exception as failure:
            text, right, error = "?", False, f"{type(failure).__name__}: {failure}"[:300]
        wrong += not right
        if not right:
            print(f"seed {seed}: {text}: {error}", flush=True)
    print(f"{count} calls, {wrong} differ", *(f"{key} {value}" for key, value in bh._native.Stack().counters() if key in ("opencl.kernels", "opencl.blocks unsupported")))
