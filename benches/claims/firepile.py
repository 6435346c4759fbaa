"""Claims of Firepile (White, 2014), chapters 3 and 4."""

from claims import NOT_MEASURED, YES, missing, number, read, row

# The paper's benchmarks as programs of the collection, and the sizes that were measured.
PROGRAMS = {
    "reduce": "yes, 2²³ of 2²⁰ to 2²³",
    "black_scholes_4096x4096": "yes, 16 M of 2 M to 16 M",
    "mvm_15m": "yes, 15.4 M of 12.1 M to 15.4 M",
    "dct8x8": "yes, 2²¹ of 2¹⁸ to 2²¹",
    "transpose_2048": "yes, 2²² of 2¹⁶ to 2²²",
}
TITLES = {
    "reduce": ("Reduce", "equal"),
    "black_scholes_4096x4096": ("Black–Scholes", "slower"),
    "mvm_15m": ("Matrix times vector", "15% faster"),
    "dct8x8": ("DCT 8 × 8", "nearly twice the time"),
    "transpose_2048": ("Transpose", "slower at all sizes"),
}
COMMAND = "benches/by_hand.py"


def beside(program):
    """How many times as fast as the kernels by hand bh's call and its kernels are."""
    found = row("by_hand", "programs", program=program)
    return found["by_hand"] / found["bh"], min(filter(None, (found["by_hand_kernels"], found["vendor_kernels"]))) / found["kernels"]


def rows():
    """The claims in the paper's order."""
    found = {name: beside(name) for name in PROGRAMS}
    lists, rays = read("objects")["memory"], row("objects", "programs", program="rays")
    within = [sum(factors[at] >= 1 / 1.15 for factors in found.values()) for at in (0, 1)]
    measured = [
        (
            f"{TITLES[name][0]} beside NVIDIA's sample (Fig. 4.2)",
            TITLES[name][1],
            f"call {number(found[name][0])}, kernels {number(found[name][1])} times as fast as plain kernels by hand",
            size,
            f"{COMMAND} {name}",
            "by_hand",
        )
        for name, size in PROGRAMS.items()
    ]
    return [
        *measured,
        (
            "Time within 15% of NVIDIA's in most benchmarks (4.1)",
            "most of 5",
            f"calls {within[0]} of 5, kernels {within[1]} of 5",
            "yes, the largest of four",
            COMMAND,
            "by_hand",
        ),
        missing("The smaller sizes of each benchmark (Fig. 4.1)", "three more of each", NOT_MEASURED),
        missing(
            "NVIDIA's sample programs themselves, and their kernels in a C++ host (hybrid)",
            "hybrid between both",
            "the samples are not here; plain kernels by hand take their place",
        ),
        (
            "Memory of a kernel's allocations, known before it runs (3.4: k = 10, 128 items)",
            "51,200 and 102,400 bytes",
            f"{lists['a']:,} and {lists['b']:,} bytes",
            YES,
            "benches/objects.py",
            "objects",
        ),
        (
            "Ray tracer that makes objects in a loop (Fig. 3.6)",
            "announced, without a figure",
            f"{number(rays['numpy'] / rays['bh'])} times as fast as Python, {number(rays['plain'] / rays['bh'])} times as the same without objects",
            "the paper gives no size; one core, busy",
            "benches/objects.py",
            "objects",
        ),
    ]
