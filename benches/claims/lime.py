"""Claims of Lime (Dubach et al., 2012), sections 4.3 and 5."""

from claims import NOT_MEASURED, listed, missing, number, percent, read, row, spread

TUNED = {"nbody_4096": "N-Body", "mosaic": "Mosaic", "coulomb_512": "CP", "mri_q": "MRIQ", "rpes": "RPES"}
# Sizes of input and output are those of Table 3 with exceptions.
SAME = "yes, except Mosaic, Series (a tenth) and the input of RPES"
DEVICE, HAND = "benches/device.py papers", "benches/by_hand.py"


def ours(file):
    """The rows of the paper's programs."""
    return [found for found in read(file)["papers" if file == "gpu" else "programs"] if "L" in found["papers"]]


def by_hand(program):
    """How many times as fast as kernels by hand bh's kernels are."""
    found = row("by_hand", "programs", program=program)
    return found["by_hand_kernels"] / found["kernels"]


def doubled(name, file, field):
    """How many times as long double precision takes."""
    single = name if name == "nbody_4096" else f"{name}_f32"
    part = "papers" if file == "gpu" else "programs"
    return row(file, part, program=f"{name}_f64")[field] / row(file, part, program=single)[field]


def slowed():
    """How many times as long each program takes without placements as with its best one."""
    ways = read("gpu")["placements"]
    return [plain / min(found[name] for found in ways.values()) for name, plain in ways["none"].items()]


def rows():
    """The claims in the paper's order."""
    gains = [found["host"] / found["later"] for found in ours("gpu")]
    outside = [1 - found["kernels"] / found["bh"] for found in ours("by_hand")]
    graph = [found["numpy"] / found["graph"] for found in read("graphs")["programs"]]
    series = [doubled(name, "by_hand", "kernels") for name in ("series", "nbody_4096")]
    return [
        (
            "One core beside bytecode (Fig. 7a)",
            "equal, at worst 10% slower",
            f"{spread(graph)} times NumPy called piece by piece",
            "N-Body and MRIQ yes, others smaller",
            "benches/graphs.py --size full",
            "graphs",
        ),
        missing("Six cores beside bytecode on one (Fig. 7a)", "4.8 to 5.7 times in five programs, 13.6 to 32.5 in four", NOT_MEASURED),
        ("GTX 580 beside bytecode on one core, end to end (Fig. 7b)", "12 to 431 times", f"{spread(gains)} times bh on 16 cores", SAME, DEVICE, "gpu"),
        missing("HD 5970 beside bytecode on one core (Fig. 7b)", "12 to 416 times", "no AMD card here"),
        (
            "Double precision beside single, GTX 580: Series and N-Body (5.1)",
            "2 to 3 times as long",
            f"kernels {listed(series)} times as long",
            "N-Body yes, Series a tenth",
            HAND,
            "by_hand",
        ),
        missing("Bytecode beside Java (5.1)", "95 to 98%; Crypt half", "bh has no bytecode of a virtual machine to run alone"),
        (
            f"Kernels beside tuned ones by hand: {', '.join(TUNED.values())} (Fig. 8)",
            "75 to 140%",
            f"{listed([by_hand(name) for name in TUNED], percent)} of the speed of kernels by hand that are not tuned",
            "N-Body, CP, MRIQ yes; Mosaic other; RPES the output",
            HAND,
            "by_hand",
        ),
        missing("The same with launches searched for on the card", "best of an exhaustive search", NOT_MEASURED),
        (
            "Global memory alone beside the best placement: GTX 8800, HD 5970, GTX 580 (Fig. 8)",
            "up to 10, 1.6 and 1.2 times as long",
            f"up to {number(max(slowed()))} times as long (H200, whole calls; [all ways](#placements))",
            SAME,
            "benches/device.py placements",
            "gpu/placements",
        ),
        (
            "Share of communication on a GPU (Fig. 9b)",
            "40% on average, 30% of it marshalling",
            f"{percent(sum(outside) / len(outside))} of a call is outside of kernels, on average; no marshalling",
            SAME,
            HAND,
            "by_hand",
        ),
        missing("Share of communication on cores (Fig. 9a)", "computing dominates, except in Crypt", NOT_MEASURED),
        missing("Marshalling without specialised routines (4.3)", "more than 90% of the time", "bh has none"),
    ]
