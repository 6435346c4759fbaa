"""Claims of Jit4OpenCL (Li, 2010), chapter 6 and the passages on tiles."""

from claims import NOT_MEASURED, YES, listed, missing, number, percent, row, spread

DEVICE, HAND = "benches/device.py papers", "benches/by_hand.py --host"
SIZES = (1024, 2048, 4096)
FIVE = ("matmul_1024", "coulomb_512", "nbody_768x768", "black_scholes_4096x4096", "mandelbrot_4096")


def device(program, form):
    """How many times as fast as the 16 cores the card is, in first runs (kernels from the cache on disk) or in later ones."""
    found = row("gpu", "papers", program=program)
    return found["host"] / found[form]


def both(names):
    """The factors of first and later runs of some programs."""
    first, later = (listed([device(name, form) for name in names]) for form in ("first", "later"))
    return f"{first} times bh on 16 cores in first runs, {later} later"


def hand(program):
    """A program's row beside kernels by hand."""
    return row("by_hand", "programs", program=program)


def share(program):
    """The share of kernels in a first run with empty caches."""
    found = hand(program)
    return found["phases"]["kernels"] / found["first"]


def rows():
    """The claims in the paper's order."""
    product, bodies, coulomb = row("gpu", "papers", program="matmul_1024"), hand("nbody_768x768"), hand("coulomb_512")
    rate = lambda form: number(2 * 1024**3 / product[form] / 1e9)
    compile_times = [1e3 * hand(name)["phases"]["compile"] for name in FIVE[1:]]
    planned = [sum(hand(name)["phases"][phase] for phase in ("analysis", "compile")) for name in ("coulomb_512", "mandelbrot_4096", "black_scholes_4096x4096")]
    no_card = "no AMD card, no jit4GPU here"
    return [
        (
            "Transpose: C on the processor is faster than the GPU at all sizes (Fig. 6.1)",
            "C wins",
            both(["transpose_4096"]),
            "4096²; the paper's stand in a plot",
            DEVICE,
            "gpu",
        ),
        ("5-point stencil: C is faster at all sizes (Fig. 6.2)", "C wins", both(["stencil_5_point"]), "4096²; the paper's stand in a plot", DEVICE, "gpu"),
        (
            "Product of matrices, GPU beside ATLAS (Fig. 6.3)",
            "42 and 30 to 33 GFLOP/s",
            f"{rate('later')} and {rate('host')} GFLOP/s, transfer of the result included",
            "1024²; the paper's stand in a plot",
            DEVICE,
            "gpu",
        ),
        (
            "Coulomb potential, N = 512, GPU beside OpenMP (Fig. 6.4; 91 in the abstract)",
            "92 times, two cores",
            f"{number(coulomb['cores'] / coulomb['bh'])} times bh on 16 cores; {number(coulomb['numpy'] / coulomb['bh'])} times NumPy",
            YES,
            f"{HAND} coulomb_512",
            "by_hand",
        ),
        (
            "N-body, N = 768 (768² bodies), GPU beside OpenMP (Fig. 6.5)",
            "49 times two cores (227 and 4.7 GFLOP/s)",
            f"{number(bodies['c'] / bodies['bh'])} times C with OpenMP on 16 cores",
            YES,
            f"{HAND} nbody_768x768",
            "by_hand",
        ),
        (
            "N-body, N = 768: kernels, and the share of everything else (Fig. 6.17)",
            "12.5 s, 9%",
            f"{number(bodies['phases']['kernels'])} s, {percent(1 - share('nbody_768x768'))}",
            YES,
            f"{HAND} nbody_768x768",
            "by_hand",
        ),
        (
            "Black–Scholes, N = 1024, 2048, 4096, GPU beside OpenMP (Fig. 6.6)",
            "0.35, 1.26 and 3.3 times",
            both([f"black_scholes_{n}x{n}" for n in SIZES]),
            YES,
            DEVICE,
            "gpu",
        ),
        (
            "Mandelbrot, N = 1024, 2048, 4096, GPU beside OpenMP (Fig. 6.7)",
            "slower, slower, 3.9 times",
            both([f"mandelbrot_{n}" for n in SIZES]),
            YES,
            DEVICE,
            "gpu",
        ),
        (
            "Share of kernels in Coulomb, Black–Scholes, Mandelbrot (Figs. 6.16, 6.18, 6.19)",
            "less than 15%",
            f"{listed([share(name) for name in FIVE[1:2] + FIVE[3:]], lambda value: f'{100 * value:.1f}%')} of a first run with empty caches",
            YES,
            HAND,
            "by_hand",
        ),
        (
            "Building the kernels of a program, NVIDIA (table in 6.2.3)",
            "0.40 to 0.42 s",
            f"{spread(compile_times)} ms, threads added up; products call a library",
            YES,
            HAND,
            "by_hand",
        ),
        ("Analysis and compiling together: Coulomb, Mandelbrot, Black–Scholes", "1.28, 1.13 and 1.3 s", f"{listed(planned)} s", YES, HAND, "by_hand"),
        (
            "Rate of transfers (6.2.3)",
            "1.6 GB/s, CUDA 2.4",
            "8.2 GB/s to the card (200 MB in 24.5 ms)",
            "the paper's size is not given",
            "benches/siblings.py opencl --programs host",
            "efee590f",
        ),
        missing("Tiles in local memory: product and stencil (2.5.1, 5.2.5)", "about 10 and 7 times", NOT_MEASURED),
        missing("AMD card: product (Figs. 6.8, 6.20)", "3 GFLOP/s; ATLAS 67, jit4GPU 233", no_card),
        missing("AMD card: Coulomb beside OpenMP (Figs. 6.9, 6.21)", "29 times; jit4GPU 124", no_card),
        missing("AMD card: N-body (Figs. 6.10, 6.22)", "71% of jit4GPU's 500 GFLOP/s", no_card),
        missing("AMD card: Black–Scholes, N = 4096 (Figs. 6.11, 6.23)", "1.4 times OpenMP; jit4GPU 8", no_card),
        missing("AMD card: Mandelbrot, N = 4096 (Figs. 6.12, 6.24)", "1.6 times jit4GPU; kernels 0.088 and 0.55 s", no_card),
    ]
