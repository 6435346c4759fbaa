"""The statements of `small.py`: what NumPy programs say, by group, and the arrays that they are about.

Names in them: `np` is the library, `n` the number of elements; `a`, `b` vectors of positive numbers, `x` one that is written
to, `f` one of single precision, `u` one of whole numbers, `m` a mask, `idx` an index array, `out` for results, `i` a Python
int, `s` a NumPy float, `k` an array of whole numbers without dimensions or a single element; `A`, `B` square matrices, `D` one
of n rows and three columns, `v` a vector of their extent.
"""

from math import isqrt

GROUPS = {
    "operators": """
        a + b; a - b; a * b; a / b; a // b; a % b; a ** b; a ** 2; a ** 0.5; -a; +a; abs(a); ~m; u & u; u << 1; a + 1.0; a + 1;
        2.0 * a; 1.0 - a; a / 2; a * s; s * a; a + f; u + 1; u * 2.0; a < b; a > .5; a == b; a != 0; a + a[::-1]; A + v;
        a * b + a; (a + b) / (a - 2.5 * b)""",
    "in place": "x += b; x *= -1.0; x -= s; x[1:] += 1.0; A[0] *= 1.0; np.add(a, b, out=out); np.sqrt(a, out=out); x[:] = a",
    "functions": """
        np.add(a, b); np.square(a); np.sqrt(a); np.exp(a); np.log(a); np.sin(a); np.abs(a); np.maximum(a, b); np.minimum(a, 0.5);
        np.negative(a); np.isnan(a); np.floor(a); np.reciprocal(a); np.sign(a); np.logical_and(m, m); np.hypot(a, b);
        np.clip(a, .2, .8); np.where(m, a, b); np.where(a > b, a, b); np.where(m, a, 0.0); np.power(a, 2); np.arctan2(a, b)""",
    "folds": """
        np.sum(a); a.sum(); float(np.sum(a)); np.sum(A, axis=0); A.sum(axis=1); A.sum(axis=-1, keepdims=True); np.max(a); a.min();
        A.max(axis=0); np.prod(a); np.mean(a); a.mean(); A.mean(axis=0); np.std(a); np.var(a); np.any(m); np.all(m);
        m.sum(); np.count_nonzero(m); np.argmax(a); np.argmin(a); np.cumsum(a); np.add.reduce(a); np.maximum.reduce(a)""",
    "products": """
        np.dot(a, b); a @ b; float(np.dot(a, b)); a.dot(b); A @ v; A @ B; np.dot(A, v); D.T @ D; np.outer(v, v); np.inner(a, b);
        A[i, :i + 1] @ A[:i + 1, i]; np.matmul(A, B)""",
    "elements": """
        a[i]; float(a[i]); A[i, i]; float(A[i, i]); a.item(i); a[k]; a[u[i]]; int(u[i]); bool(m[i]); a[i] > a[0];
        1 if a[i] > a[0] else 0; max(a[i], a[0]); a[i] + 1.0; a[i] * a[0]; a[i] * a; [e for e in a[:8]]; a[-1]; len(a); s in a[:4]""",
    "assignment": """
        x[i] = 1.5; x[i] = a[i]; x[i] += 1.0; A[i, i] -= 1.0; A[i] = v; x[1:-1] = a[1:-1]; x[:] = 0; A[:, 0] = v; x[...] = 1.0;
        A[i, i] -= A[i, :i] @ A[:i, i]; x[k] = 2.0""",
    "masks and indices": """
        a[m]; a[a > .5]; x[m] = 0; x[m] = a[m]; x[a > .5] = 1.0; a[idx]; x[idx] = 0; x[idx] = a[idx]; a[idx] + b; A[idx2]; A[:, idx2];
        np.take(a, idx); np.nonzero(m); np.flatnonzero(m); a[~m]; a[m].sum(); a[[0, -1]]""",
    "creation": """
        np.zeros(n); np.ones(n); np.empty(n); np.full(n, 2.0); np.arange(n); np.arange(float(n)); np.zeros((n, 2)); np.zeros_like(a);
        np.empty_like(a); np.ones_like(a); a.copy(); np.copy(a); np.linspace(0.0, 1.0, n); np.array(a); np.asarray(a); np.eye(3);
        np.array([1.0, 2.0, 3.0]); np.zeros(n, dtype=np.int64)""",
    "shapes and types": """
        a[1:-1]; a[::2]; a[::-1]; A[1:, :-1]; A[i]; A[:, 0]; a.reshape(-1, 1); A.reshape(-1); A.ravel(); A.flatten(); A.T; A.shape;
        a.dtype; a.ndim; a.size; a[:, None]; a[None]; a.astype(np.float32); a.astype(np.float64); u.astype(float); np.transpose(A);
        np.concatenate((a, b)); np.stack((a, b)); np.roll(a, 1); np.sort(a); np.reshape(a, (1, -1)); np.expand_dims(a, 0);
        np.broadcast_to(a, (2, n)); np.diff(a); np.squeeze(a)""",
}  # fmt: skip

STATEMENTS = [(group, text.strip()) for group, block in GROUPS.items() for text in block.split(";")]


def names(np, n):
    """The names that statements use, in one of the libraries."""
    import numpy

    side = max(1, isqrt(n))
    fractions = (numpy.arange(n) * 0.618034) % 1.0 + 0.05
    matrix = ((numpy.arange(side * side) * 0.414214) % 1.0).reshape(side, side)
    array = lambda value: np.array(value)
    return {
        "np": np, "n": n, "a": array(fractions), "b": array(fractions[::-1] + 0.25), "x": array(fractions), "out": array(fractions),
        "f": array(fractions.astype(numpy.float32)), "u": array(numpy.arange(n) % max(1, n // 2)), "m": array(fractions > 0.5),
        "idx": array((numpy.arange(n) * 7) % n), "idx2": array(numpy.arange(side)[::-1].copy()), "i": side // 2, "s": numpy.float64(0.75),
        "k": np.array(n // 2), "A": array(matrix), "B": array(matrix.T.copy()), "v": array(matrix[0].copy()),
        "D": array(numpy.tile(fractions, 3).reshape(n, 3)),
    }  # fmt: skip
