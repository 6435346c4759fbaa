"""Computes the exported cases with NumPy and compares with the oracle's results.

Usage: check.py DIRECTORY. Prints one closing line; exits with 1 after the first differences.
"""

import math
import sys

import numpy as np

TWO = (int(np.__version__.split(".")[0]) >= 2)

# Functions that neither side rounds correctly; the others must agree bit by bit.
FUNCTIONS = {
    "power", "cos", "sin", "tan", "cosh", "sinh", "tanh", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh",
    "arctan2", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "erf", "erfc", "cbrt",
}
RENAMED = {"copy": None, "conj": "conjugate"}
REDUCTIONS = {
    "add": np.add, "multiply": np.multiply, "minimum": np.minimum, "maximum": np.maximum, "logical_and": np.logical_and,
    "logical_or": np.logical_or, "logical_xor": np.logical_xor, "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
}


def integer_power(base, exponent):
    """Exact power; a negative exponent truncates the true value towards 0, and 0 to it gives 0."""
    result = np.power(base, np.maximum(exponent, 0))
    if np.issubdtype(base.dtype, np.signedinteger):
        odd = np.where(exponent % 2 == 0, 1, -1)
        inverse = np.where(base == 1, 1, np.where(base == -1, odd, 0)).astype(base.dtype)
        result = np.where(exponent < 0, inverse, result)
    return result.astype(base.dtype)


def convert(value, dtype):
    """The cast, and where NumPy defines it."""
    with np.errstate(all="ignore"):
        result = value.astype(dtype)
    defined = np.ones(value.shape, bool)
    if value.dtype.kind == "f" and dtype.kind in "iu":
        info = np.iinfo(dtype)
        truncated = np.trunc(value.astype(np.float64))
        defined = (truncated >= float(info.min)) & (truncated < float(info.max))
    return result, defined


def compute(opcode, parameter, output, inputs):
    """The result and where it counts; None for what NumPy has no answer to."""
    first = inputs[0]
    everywhere = np.ones(output.shape, bool)
    if opcode == "copy":
        result, defined = convert(first, output.dtype)
        return np.broadcast_to(result, output.shape), np.broadcast_to(defined, output.shape)
    if opcode.endswith("_reduce"):
        function = REDUCTIONS[opcode[:-len("_reduce")]]
        axes = tuple(axis for axis in range(first.ndim) if parameter >> axis & 1)
        if function in (np.minimum, np.maximum) and any(first.shape[axis] == 0 for axis in axes):
            return None
        return np.asarray(function.reduce(first, axis=axes, dtype=first.dtype)), everywhere
    if opcode.endswith("_accumulate"):
        function = REDUCTIONS[opcode[:-len("_accumulate")]]
        return function.accumulate(first, axis=parameter.bit_length() - 1, dtype=first.dtype), everywhere
    if opcode == "powi":
        square = first * first
        powers = {2: square, 3: square * first, 4: square * square, 5: square * square * first}
        return powers[parameter], everywhere
    if opcode == "power" and output.dtype.kind in "iu":
        return integer_power(*inputs), everywhere
    if opcode == "divide" and output.dtype.kind in "iu":
        return np.floor_divide(*inputs), everywhere
    if opcode in ("erf", "erfc"):
        function = getattr(math, opcode)
        values = [function(float(x)) for x in first.ravel()]
        return np.array(values, np.float64).astype(output.dtype).reshape(output.shape), everywhere
    if opcode == "sign" and output.dtype.kind == "c" and not TWO:
        return None
    if opcode == "where":
        return np.where(*inputs), everywhere
    if opcode in ("isinf", "isnan", "isfinite") and first.dtype.kind in "biu":
        return np.full(output.shape, opcode == "isfinite"), everywhere
    if opcode in ("real", "imag"):
        return getattr(first, opcode), everywhere
    return getattr(np, RENAMED.get(opcode) or opcode)(*inputs), everywhere


def fold(opcode, parameter, value):
    """Running folds of |x| in wide numbers along one last axis; for a reduction all its axes as one."""
    wide = np.abs(value.astype(np.complex128))
    function = np.add if opcode.startswith("add") else np.multiply
    if opcode.endswith("_accumulate"):
        axis = parameter.bit_length() - 1
        return np.moveaxis(function.accumulate(wide, axis=axis), axis, -1), axis
    axes = [axis for axis in range(wide.ndim) if parameter >> axis & 1]
    kept = [axis for axis in range(wide.ndim) if axis not in axes]
    count = math.prod(wide.shape[axis] for axis in axes)
    rows = wide.transpose(kept + axes).reshape([wide.shape[axis] for axis in kept] + [count])
    return function.accumulate(rows, axis=-1), None


def fold_bound(opcode, parameter, value, shape):
    """2nε·Σ|x| of a sum, or the like of a product; infinite where an order of the elements overflows or underflows."""
    info = np.finfo(value.dtype)
    partial, axis = fold(opcode, parameter, value)
    if partial.shape[-1] == 0:
        return np.zeros(shape)
    bound = 8 * partial.shape[-1] * info.eps * partial
    lost = np.maximum.accumulate(partial, axis=-1) > float(info.max) / 4
    if opcode.startswith("multiply"):
        lost |= np.minimum.accumulate(np.where(partial == 0, np.inf, partial), axis=-1) < float(info.tiny) * 4
    bound = np.where(lost | np.isnan(bound), np.inf, bound)
    return np.moveaxis(bound, -1, axis) if axis is not None else bound[..., -1].reshape(shape)


def differs(opcode, parameter, oracle, mine, inputs):
    """Where the oracle and NumPy disagree."""
    kind = oracle.dtype.kind
    if kind not in "fc":
        return oracle != mine
    same = (oracle == mine) | (np.isnan(oracle) & np.isnan(mine))
    distance = np.abs(oracle.astype(np.complex128) - mine.astype(np.complex128))
    size = np.abs(oracle.astype(np.complex128))
    info = np.finfo(oracle.dtype)
    if opcode.rsplit("_", 1)[-1] in ("reduce", "accumulate") and opcode[:3] in ("add", "mul"):
        bound = fold_bound(opcode, parameter, inputs[0], oracle.shape)
        return ~(same | (distance <= bound) | np.isinf(bound))
    if inputs[0].dtype.kind == "c":
        # NumPy multiplies, divides and handles infinite parts by formulas of its own.
        finite = np.isfinite(oracle) & np.isfinite(mine)
        for value in inputs:
            finite &= np.isfinite(value) & (np.abs(value) < info.max ** 0.25) & (np.abs(value) > info.tiny ** 0.25)
        slack = 64.0
        if opcode == "power":
            # exp(b·log a) loses as many digits as b·log a has before the point.
            base, exponent = (value.astype(np.complex128) for value in inputs)
            slack = slack * (1 + np.abs(exponent * np.log(np.where(base == 0, 1, base))))
        if opcode == "exp2":
            # NumPy rounds z·log 2 before it takes the sine and cosine of its imaginary part.
            slack = slack * (1 + np.abs(inputs[0].astype(np.complex128)))
        if opcode == "log1p":
            # NumPy takes the logarithm of 1 + z, which is right to the precision of 1 only.
            size = np.maximum(size, 1)
        return ~(same | (distance <= slack * info.eps * np.maximum(size, info.tiny)) | ~finite)
    if opcode in FUNCTIONS:
        return ~(same | (distance <= 8 * info.eps * np.maximum(size, info.tiny)))
    return ~same


def main(directory):
    data = open(f"{directory}/data.bin", "rb").read()
    compared = skipped = 0
    failures = []
    for line in open(f"{directory}/cases.tsv", encoding="utf-8"):
        title, opcode, parameter, *operands = line.rstrip("\n").split("\t")
        arrays = []
        for operand in operands:
            name, shape, start = operand.split(" ")
            shape = tuple(int(extent) for extent in shape.split(",") if extent)
            dtype = np.dtype(name)
            arrays.append(np.frombuffer(data, dtype, math.prod(shape), int(start)).reshape(shape))
        oracle, inputs = arrays[0], arrays[1:]
        with np.errstate(all="ignore"):
            answer = compute(opcode, int(parameter), oracle, inputs)
            if answer is None:
                skipped += 1
                continue
            mine, counts = answer
            mine = np.asarray(mine)
            if mine.dtype != oracle.dtype or np.broadcast_shapes(mine.shape, oracle.shape) != oracle.shape:
                failures.append(f"{title}: NumPy gives {mine.dtype}{mine.shape}, not {oracle.dtype}{oracle.shape}")
                continue
            mine = np.broadcast_to(mine, oracle.shape)
            wrong = differs(opcode, int(parameter), oracle, mine, inputs) & counts
        compared += 1
        if wrong.any():
            place = tuple(int(index[0]) for index in np.nonzero(wrong)) if oracle.ndim else ()
            operands = [value[place] if value.shape == oracle.shape else "..." for value in inputs]
            failures.append(f"{title}: {int(wrong.sum())} differ; at {place} of {operands}: "
                            f"NumPy {mine[place]!r}, oracle {oracle[place]!r}")
    for failure in failures[:40]:
        print(failure)
    print(f"NumPy {np.__version__}: {compared} cases compared, {len(failures)} differ, {skipped} have no counterpart")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
