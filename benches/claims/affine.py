"""Claims of the report on affine loop nests (Baskaran et al., 2007), sections 3 and 8."""

from claims import PLOT, YES, missing, number, read, row, spread

HAND, MICRO = "benches/by_hand.py", "benches/micro.py"
PLAIN = "yes; plain OpenCL, without bh"


def access(kind, n, system):
    """Gigabytes a second of sums of rows or columns."""
    return row("access", "rows", case=f"{kind} of {n} x {n}")[system]


def vectors(one, other):
    """The least and the greatest ratio of two forms of a product with a vector over the sizes."""
    return spread(found[one] / found[other] for found in read("micro")["vectors"])


def beside(program):
    """How many times as fast as the best other kernels, and beside kernels by hand as a whole call, bh is."""
    found = row("by_hand", "programs", program=program)
    best = min(filter(None, (found["by_hand_kernels"], found["vendor_kernels"])))
    return number(found["by_hand"] / found["bh"]), number(best / found["kernels"])


def vendor(program):
    """How many times as fast as cuBLAS's kernels bh's are."""
    found = row("by_hand", "programs", program=program)
    return number(found["vendor_kernels"] / found["kernels"])


def rows():
    """The claims in the paper's order."""
    micro = read("micro")
    last, local = micro["groups"].index(512), {found["stride"]: found["gb_s"] for found in micro["local"]}
    strides = {found["stride"]: found["gb_s"] for found in micro["global"]}
    odd = [local[stride] for stride in range(1, 17, 2)]
    unrolled = [found["billions"] for found in micro["unrolled"]]
    product = row("by_hand", "programs", program="matmul_4096")
    mri = {name: row("gpu", "papers", program=name) for name in ("mri_q", "mri_fhd")}
    gains = [access("rows", n, "bh") / access("columns", n, "bh") for n in (2048, 4096, 8192)]
    return [
        (
            "Blocked and cyclic access by one group (Table 1)",
            "4.1 to 6.4 and 22.9 to 68.5 GB/s: about 10 times",
            f"sums of rows {spread(gains)} times as fast as of columns",
            "other experiment: whole card, 2048² to 8192²",
            "benches/access.py",
            "access",
        ),
        (
            "Stride 64 beside 1, groups of 512 (Fig. 1)",
            "every stride but 1 is poor",
            f"{number(strides[64][last])} beside {number(strides[1][last])} GB/s",
            PLAIN,
            MICRO,
            "micro",
        ),
        (
            "Groups of 512 beside 32 at stride 1 (Fig. 1)",
            "512 is best",
            f"{number(strides[1][last] / strides[1][0])} times; from 64 on no difference",
            PLAIN,
            MICRO,
            "micro",
        ),
        (
            "Local memory: odd strides are fastest (Fig. 2)",
            "strides 1 to 16",
            f"odd {spread(odd)}, 8 {number(local[8])}, 16 {number(local[16])} GB/s",
            PLAIN,
            MICRO,
            "micro",
        ),
        ("Unrolling a loop of 1,024 additions (Fig. 3)", PLOT, f"{number(max(unrolled) / unrolled[0])} times at most", PLAIN, MICRO, "micro"),
        (
            "Time grows with the number of requests to a bank (Fig. 6)",
            "linear",
            f"stride 32 takes {number(local[1] / local[32])} times as long as 1, 16 {number(local[1] / local[16])} times",
            "32 banks instead of 16; plain OpenCL, without bh",
            MICRO,
            "micro",
        ),
        (
            "Matrix times vector: local memory beside direct (Table 2)",
            "29 to 57 times",
            f"{vectors('mv_shared', 'mv_direct')} times without padding; {vectors('mv_padded', 'mv_direct')} with",
            PLAIN,
            MICRO,
            "micro",
        ),
        ("Matrix times vector: padding (Table 2)", "2.35 to 2.47 times", f"{vectors('mv_padded', 'mv_shared')} times", PLAIN, MICRO, "micro"),
        (
            "Transpose times vector: cyclic beside blocks (Table 3)",
            "6.0 to 10.3 times",
            f"{vectors('tmv_cyclic', 'tmv_blocks')} times: blocks win",
            PLAIN,
            MICRO,
            "micro",
        ),
        (
            "Product 4096² beside CUBLAS (8.2)",
            "97 beside 101 GFLOP/s",
            f"bh calls cuBLAS: {number(2 * 4096**3 / product['bh'] / 1e9)} GFLOP/s with the result on the host; cuBLAS's kernel alone {number(2 * 4096**3 / product['vendor_kernels'] / 1e9)}",
            YES,
            f"{HAND} matmul_4096",
            "by_hand",
        ),
        missing(
            "Versions of the product in the search, and what the model leaves out (8.2, Fig. 7)",
            "loads from 4K³/2⁷ to 4K³/2⁴",
            "products call a library, so bh searches nothing",
        ),
        (
            "mv, tmv and mvt beside CUBLAS, kernels (Fig. 8)",
            "faster",
            f"{vendor('mv_8192')}, {vendor('tmv_8192')} and {vendor('mvt_8192')} times",
            "8192², the largest of Tables 2 and 3",
            HAND,
            "by_hand",
        ),
        (
            "MRI-Q and MRI-FHD beside plain kernels (Table 4)",
            "16.6 and 15.3 times",
            f"kernels {beside('mri_q')[1]} and {beside('mri_fhd')[1]} times as fast as plain ones by hand",
            "32,768 points; the paper gives none",
            HAND,
            "by_hand",
        ),
        (
            "MRI-Q and MRI-FHD beside the processor (Table 4)",
            "940 and 861 times",
            f"{number(mri['mri_q']['host'] / mri['mri_q']['later'])} and {number(mri['mri_fhd']['host'] / mri['mri_fhd']['later'])} times bh on 16 cores",
            "32,768 points; the paper gives none",
            "benches/device.py papers",
            "gpu",
        ),
        (
            "FDTD in two dimensions (Fig. 9)",
            PLOT,
            "kernels {1}, whole call {0} times as fast as by hand".format(*beside("fdtd_2d")),
            "2048² × 20; the paper gives none",
            f"{HAND} fdtd_2d",
            "by_hand",
        ),
    ]
