"""Claims of the papers in Blum's thesis (2015): their tables and figures in the order of the papers."""

from claims import NOT_MEASURED, PLOT, YES, listed, missing, number, percent, read, row, spread

SIZES, TRANSPARENT, SHARED = "benches/paper_sizes.py", "benches/transparent.py", "benches/ranks_threads.py --prefix DIR"
PROGRAMS, NPBACKEND, FUSION = "benches/run.py --size full --threads 16", "benches/backends.py --programs paper", "benches/fusion.py"
CARD = "benches/transparent.py --sizes papers --cores"
ONE_CORE = "yes; one core, busy"
UNREAD = "bh drops the sums of changes, which the program does not read"


def sized(program, n, one="numpy", other="bh"):
    """How many times as fast one form is as another at the paper's size."""
    seconds = row("paper_sizes", "rows", program=program, n=n)["seconds"]
    return seconds[one] / seconds[other]


def device(program, n, dtype, form="step"):
    """How many times as fast as NumPy the card is."""
    found = row("transparent", "rows", program=program, n=n, dtype=dtype)
    return found["numpy"] / found[form]


def card(program, n, form="step"):
    """How many times as fast as NumPy the card (or, with `cpu_step`, 16 cores) is at the size of another paper, in double precision."""
    found = row("transparent_papers", "rows", program=program, n=n)
    return found["numpy"] / found[form]


def ranks(program, count, threads):
    """How many times as fast as one core some ranks with some threads each are."""
    ways = row("ranks_threads", "programs", program=program)["ways"]
    seconds = {(way["ranks"], way["threads"]): way["seconds"] for way in ways}
    return number(seconds[1, 1] / seconds[count, threads])


def full(program, one="numpy_seconds"):
    """How many times as fast as NumPy or C a program is on 16 cores."""
    found = row("programs", None, bench=program)
    return number(found[one] / found["seconds"])


def cphvb():
    """The first paper: four programs on a laptop with two cores."""
    programs = [
        ("Jacobi", 3, "heat_equation", 7168, "1.42 and 2.0"),
        ("Nearest neighbours", 4, "knn", 10_000, "3.57 and 6.8"),
        ("Shallow water", 5, "shallow_water", 100, "1.52 and 2.98"),
        ("Synthetic stencil", 6, "synthetic_stencil", 10_240, "1.6 and 3.04"),
    ]
    remarks = {
        "heat_equation": f"; {UNREAD}",
        "knn": "; NumPy took the paper 5.4 s, 0.08 s here",
        "shallow_water": ", as its text says; NumPy took 7.9 s there, 0.03 s here",
    }
    rows = [
        (
            f"{title}: one core and all cores beside NumPy (Fig. {figure})",
            f"{paper} times" if name != "heat_equation" else "1.42 times on one core",
            f"{number(sized(name, n))} times on one core",
            f"{ONE_CORE}{remarks.get(name, '')}",
            f"{SIZES} {name}",
            "paper_sizes",
        )
        for title, figure, name, n, paper in programs
    ]
    slower = [found["program"] for found in read("paper_sizes")["rows"] if found["paper"] == "cphVB" and found["seconds"]["numpy"] < found["seconds"]["bh"]]
    return [*rows, ("No program is slower than NumPy", "0 of 4", f"{len(slower)} of 4", ONE_CORE, SIZES, "paper_sizes")]


def unmodified():
    """*Unmodified NumPy code*, 2013: two processors with 16 cores each, eight nodes, two cards."""
    more = row("papers_programs", None, bench="nbody_collisions")
    hosts = "one host of 16 cores; bh's closed formula and N-body without collisions"
    return [
        (
            "Shallow water on the processors beside NumPy (Fig. 6)",
            "2.18 times",
            f"{full('shallow_water')} times on 16 cores",
            "4000² × 3; 25,000² takes NumPy tens of GB",
            PROGRAMS,
            "programs",
        ),
        (
            "Black–Scholes by random paths on the processors beside NumPy (Fig. 7)",
            "1.28 times (10.1 / 7.91)",
            f"{number(sized('monte_carlo_options', 10_000_000))} times on one core",
            ONE_CORE,
            f"{SIZES} monte_carlo_options",
            "paper_sizes",
        ),
        (
            "N-body on the processors beside NumPy (Fig. 8)",
            "1.29 times",
            f"{number(more['numpy_seconds'] / more['seconds'])} times on one core",
            "4,000 bodies; 25,000 take NumPy tens of GB",
            "benches/run.py --size full nbody_collisions",
            "papers_programs",
        ),
        (
            "Eight nodes beside one: shallow water, Black–Scholes, N-body",
            "6.07, 7.91 and 7.96 times",
            f"16 ranks beside one: {ranks('shallow_water', 16, 1)}, {ranks('black_scholes', 16, 1)} and {ranks('nbody', 16, 1)} times",
            hosts,
            SHARED,
            "ranks_threads",
        ),
        missing("Jacobi: temporaries of an iteration that get memory (section IV F)", "2 of 7 with a cache of memory", NOT_MEASURED),
        missing("Eight nodes beside NumPy: the same", "13.2, 10.1 and 9.0 times", "no eight hosts here"),
        (
            "Shallow water on HD 7850 and GTX 680 beside NumPy (Fig. 6)",
            "89 and 140 times",
            f"{number(card('shallow_water', 2828))} times",
            "yes; 2828² instead of 2,000 × 4,000",
            CARD,
            "transparent_papers",
        ),
        (
            "Black–Scholes on the cards (Fig. 7; 181 in the conclusion)",
            "130 and 181 times",
            f"{number(card('monte_carlo_options', 32_000_000))} times",
            "yes, 32 M × 50",
            CARD,
            "transparent_papers",
        ),
        (
            "N-body on the cards (Fig. 8)",
            "41.3 and 77.1 times",
            f"{number(card('nbody_collisions', 1600))} times",
            "yes, 1,600 × 50",
            CARD,
            "transparent_papers",
        ),
    ]


def virtual_machine():
    """*A virtual machine approach*, 2014: nodes of 32 cores, three languages."""
    options = row("cxx", "programs", program="monte_carlo_options")["seconds"]
    return [
        (
            "Shallow water: one core beside NumPy (Fig. 9)",
            "2.1 times",
            f"{number(sized('shallow_water', 2000))} times",
            "2000² × 100; 25,000² takes NumPy tens of GB",
            f"{SIZES} shallow_water",
            "paper_sizes",
        ),
        (
            "32 cores beside one: shallow water, Black–Scholes, N-body (Figs. 9–11)",
            "13, 17 and 20 times",
            f"16 cores: {ranks('shallow_water', 1, 16)}, {ranks('black_scholes', 1, 16)} and {ranks('nbody', 1, 16)} times",
            "4000², 16 M, 8,000; Black–Scholes by its formula, no collisions",
            SHARED,
            "ranks_threads",
        ),
        (
            "Black–Scholes in C++: Blitz++ beside one core (Fig. 10)",
            "Blitz++ 1.2 times as fast",
            f"bh {number(options['blitz'] / options['bh'])} times as fast",
            "1 M × 3 of 100 M × 10",
            "benches/cxx.py",
            "cxx",
        ),
        (
            "Eight nodes beside one: shallow water, Black–Scholes, N-body (31 with 32 processes)",
            "7.0, 9.1 and 3.7 times",
            f"16 ranks beside one: {ranks('shallow_water', 16, 1)}, {ranks('black_scholes', 16, 1)} and {ranks('nbody', 16, 1)} times",
            "one host of 16 cores",
            SHARED,
            "ranks_threads",
        ),
        (
            "Shallow water on GTX 680 beside NumPy (Fig. 9)",
            "140 times",
            f"{number(card('shallow_water', 4000))} times",
            "yes, 4000² × 100",
            CARD,
            "transparent_papers",
        ),
        missing("Black–Scholes in C++ on GTX 680 beside Blitz++ (Fig. 10), 64 M", PLOT, NOT_MEASURED),
        missing("N-body in C# on GTX 680 beside NumCIL (Fig. 11), 3,200 bodies", "134 times", NOT_MEASURED),
        (
            "Shallow water: C by hand beside Bohrium",
            "C 5.6 times as fast",
            f"bh {full('shallow_water', 'twin_seconds')} times as fast as C, 16 cores",
            "4000² × 3",
            PROGRAMS,
            "programs",
        ),
    ]


def transparent():
    """*Transparent GPU execution*, 2014: four programs on two cards of a workstation, and on a laptop."""
    found = read("transparent")["rows"]
    mean = sum(one["numpy"] / one["step"] for one in found) / len(found)
    first = {
        name: [one["numpy"] / one["first"] for one in found if one["program"] == name]
        for name in ("monte_carlo_options", "sor", "shallow_water", "nbody_collisions")
    }
    ahead = lambda name: f"{sum(value > 1 for value in first[name])} of 6"
    double, single = (
        row("transparent", "rows", program="monte_carlo_options", n=16_000_000),
        row("transparent", "rows", program="monte_carlo_options", n=32_000_000),
    )
    options = row("cxx", "programs", program="monte_carlo_options")["seconds"]
    return [
        (
            "Black–Scholes, `f32`, HD 7970 and GTX 680 beside NumPy (Fig. 9)",
            "834 and 643 times",
            f"{number(device('monte_carlo_options', 32_000_000, 'f32'))} times",
            "yes, the largest",
            f"{TRANSPARENT} monte_carlo_options",
            "transparent",
        ),
        (
            "SOR, `f32` and `f64` (Fig. 10)",
            "109 or 94, and 72 or 61 times",
            f"{number(device('sor', 16_384, 'f32'))} and {number(device('sor', 11_586, 'f64'))} times",
            "yes, the largest",
            f"{TRANSPARENT} sor",
            "transparent",
        ),
        (
            "Shallow water (Fig. 11)",
            PLOT,
            f"up to {number(device('shallow_water', 2896, 'f64'))} times",
            "4096² and less; the paper's stand in a plot",
            f"{TRANSPARENT} shallow_water",
            "transparent",
        ),
        (
            "N-body (Fig. 12)",
            "up to 40 to 100 times",
            f"{number(device('nbody_collisions', 3200, 'f32'))} and, `f64`, {number(device('nbody_collisions', 2262, 'f64'))} times",
            "3,200 and 2,262 bodies; the paper's stand in a plot",
            f"{TRANSPARENT} nbody_collisions",
            "transparent",
        ),
        (
            "Average of the four programs",
            "124 times",
            f"{number(mean)} times over all rows [below](#four-programs-on-the-card)",
            "three sizes of each",
            TRANSPARENT,
            "transparent",
        ),
        (
            "One iteration of Black–Scholes",
            "10 to 500 times",
            f"{spread(first['monte_carlo_options'])} times, kernels built in it",
            "three sizes; the paper ran a warm-up before",
            TRANSPARENT,
            "transparent",
        ),
        (
            "One iteration is faster than NumPy: SOR, shallow water",
            "all but the two smallest; up to 30 times",
            f"{ahead('sor')} and {ahead('shallow_water')}; up to {number(max(first['sor'] + first['shallow_water']))} times",
            "three sizes; the paper ran a warm-up before",
            TRANSPARENT,
            "transparent",
        ),
        (
            "One iteration is faster than NumPy: N-body",
            "the two largest",
            f"{ahead('nbody_collisions')}",
            "three sizes; the paper ran a warm-up before",
            TRANSPARENT,
            "transparent",
        ),
        (
            "Black–Scholes: half the size in `f64` beside `f32`, laptop",
            "3.92 times as long",
            f"{number(double['step'] / single['step'])} times as long",
            "yes, on another kind of card",
            TRANSPARENT,
            "transparent",
        ),
        (
            "Blitz++ and Armadillo on Black–Scholes beside NumPy",
            "1.34 and 1.24 times",
            f"{number(options['blitz'] / options['bh'])} and {number(options['armadillo'] / options['bh'])} times bh's time; NumPy not in that run",
            "1 M × 3",
            "benches/cxx.py",
            "cxx",
        ),
        missing("Laptop: Black–Scholes `f32` and `f64`, N-body (Fig. 8)", "72 and 11 times, 9.4 to 9.7 times", "no card of a laptop here"),
    ]


def npbackend():
    """*Separating NumPy API from implementation*, 2014: one program on several back ends."""
    found = {one["program"]: one["seconds"] for one in read("backends")["programs"]}
    three = ("heat_equation", "shallow_water", "snakes_and_ladders")
    over = lambda form, base: [found[name][form] / found[name][base] - 1 for name in three]
    snakes = found["snakes_and_ladders"]
    part = "yes, 10 of 100 iterations"
    return [
        *(
            (
                f"{title}: numexpr and Bohrium on eight cores beside NumPy (Fig. {figure})",
                paper,
                f"one core each: numexpr {number(found[name]['NumPy alone'] / found[name]['numexpr'])}, bh {number(sized(name, n))} times",
                ONE_CORE + ("; numexpr 10 of 100 iterations" if n > 1000 else "") + (f"; {UNREAD}" if figure == 9 else ""),
                f"{SIZES} {name}",
                "paper_sizes",
            )
            for title, figure, name, n, paper in (
                ("Heat equation", 9, "heat_equation", 3000, "2.2 and 2.6 times"),
                ("Shallow water", 10, "shallow_water", 2000, "2 and 2 times"),
                ("Snakes and ladders", 11, "snakes_and_ladders", 1000, "0.91 times; Bohrium much slower"),
            )
        ),
        missing("libgpuarray: the same programs (Figs. 9–11)", "5.6, 3.7 and 1.5 times", "bh has no such back end"),
        (
            "Shallow water on the GPU (Fig. 10)",
            "12 times",
            f"{number(card('shallow_water', 2000))} times",
            "yes",
            CARD,
            "transparent_papers",
        ),
        (
            "Heat equation, snakes and ladders on the GPU (Figs. 9, 11)",
            "18 and 1.9 times",
            f"{number(card('heat_equation', 3000))} and {number(card('snakes_and_ladders', 1000))} times",
            "yes; NumPy's products ran on 16 cores",
            CARD,
            "transparent_papers",
        ),
        (
            "Heat equation: NumPy through the layer beside NumPy (Fig. 9)",
            "faster, as it keeps memory",
            f"{number(found['heat_equation']['NumPy alone'] / found['heat_equation']['numpy'])} times as fast",
            part,
            NPBACKEND,
            "backends",
        ),
        (
            "Products left to NumPy, processor (Fig. 12)",
            "14% longer",
            f"{percent(snakes['numpy, products left'] / snakes['numpy'] - 1)} (numpy), {percent(snakes['numexpr, products left'] / snakes['numexpr'] - 1)} (numexpr)",
            YES,
            NPBACKEND,
            "backends",
        ),
        missing("Products left to NumPy, libgpuarray and Bohrium on the GPU (Fig. 12)", "60% and 23% longer", NOT_MEASURED),
        (
            "What the layer costs without kept memory (Fig. 13)",
            "2 to 21%",
            listed(over("numpy, nothing kept", "NumPy alone"), percent),
            part,
            NPBACKEND,
            "backends",
        ),
        ("What it costs with kept memory (Figs. 9–11)", "hidden in two of three", listed(over("numpy", "NumPy alone"), percent), part, NPBACKEND, "backends"),
    ]


def specialisation():
    """*Code specialization*, 2015: six programs with sizes in the text of kernels, or as arguments."""
    found = read("specialise")["programs"]
    ways = {(one["program"], one["dtype"]): one["ways"] for one in found}
    gain = lambda way, column: [one["dynamic"][column] / one[way][column] for one in ways.values()]
    each = [1e3 * one[way]["compile"] / one[way]["built"] for one in ways.values() for way in ("dynamic", "fixed")]
    longer = [ways[name, dtype]["fixed"]["application"] / ways[name, dtype]["dynamic"]["application"] for name in ("gauss", "lu") for dtype in ("f32", "f64")]
    command, other = "benches/specialise.py", "the paper gives no sizes"
    below = sum(value < 1 for value in gain("selected", "application"))
    return [
        ("Building kernels of a program, NVIDIA (Table 3)", "0.72 to 2.7 s", f"{spread(each)} ms a kernel", other, command, "specialise"),
        missing("Building on AMD (Tables 4 and 5)", "59 to 301 ms, a tenth of NVIDIA's", "no AMD card here"),
        (
            "Whole programs, *selected* beside *dynamic*, GTX 680 (Table 6)",
            "0.95 to 2.49 times; below 1 in 3 of 12",
            f"{spread(gain('selected', 'application'))} times; below 1 in {below} of 12",
            other,
            command,
            "specialise",
        ),
        (
            "Kernels alone, *selected* beside *dynamic*, GTX 680 (Table 6)",
            "1.00 to 2.64 times",
            f"{spread(gain('selected', 'kernels'))} times, *fixed* {spread(gain('fixed', 'kernels'))}",
            other,
            command,
            "specialise",
        ),
        missing("HD 7970 (Table 7)", "1.00 to 2.18 times, kernels to 3.23", "no AMD card here"),
        (
            "Elimination with fixed kernels alone (Figs. 7–10)",
            "orders of magnitude longer",
            f"{spread(longer)} times as long",
            "100² × 20; " + other,
            command,
            "specialise",
        ),
    ]


def fusion():
    """*Fusion of array operations at runtime*: costs, run times, planning."""
    costs, programs = read("fusion")["fig3"], read("fusion")["programs"]
    sized_rows = [found for found in read("paper_sizes")["rows"] if found["paper"] == "fusion"]
    ended = [found["seconds"] for found in sized_rows if {"singleton", "naive", "greedy"} <= found["seconds"].keys()]
    solved = [one for one in programs.values() if one["optimal"]["in_budget"]]
    level = sum(one["greedy"]["cost"] == one["optimal"]["cost"] for one in solved)
    planned = [one["greedy"]["seconds"]["none"] / one["greedy"]["seconds"]["warm"] for one in programs.values()]
    cold = [one["greedy"]["seconds"]["cold"] / one["greedy"]["seconds"]["warm"] for one in programs.values()]
    ahead = sum(one["naive"]["seconds"]["none"] < one["greedy"]["seconds"]["none"] for one in programs.values())
    small = "batches of three steps at small size"
    figures = "Table I, but middle size"
    return [
        (
            "Costs of Fig. 3 by the paper's rules: naive, greedy, unintrusive, optimal (Figs. 7, 8, 12, 13)",
            "50, 46, 62 and 34",
            listed([costs[way] for way in ("naive", "greedy", "unintrusive", "optimal")]),
            YES,
            FUSION,
            "fusion",
        ),
        ("Programs of 15 that *optimal* does not solve (Fig. 14)", "5", f"{len(programs) - len(solved)} within 100,000 steps", small, FUSION, "fusion"),
        ("*greedy* costs what *optimal* finds (Fig. 14)", "almost always", f"{level} of {len(solved)} that it solves", small, FUSION, "fusion"),
        (
            "Run time of *singleton* beside *greedy* (Fig. 15)",
            PLOT,
            f"{spread(one['singleton'] / one['greedy'] for one in ended)} times in {len(ended)} of 15 programs, planning in it",
            "yes; one core, busy, no kernel compiler",
            SIZES,
            "paper_sizes",
        ),
        (
            "Run time of *naive* beside *greedy* (Fig. 15)",
            PLOT,
            f"{spread(one['naive'] / one['greedy'] for one in ended)} times in {len(ended)} of 15 programs",
            "yes; one core, busy, no kernel compiler",
            SIZES,
            "paper_sizes",
        ),
        (
            "20 iterations pay for planning (Fig. 16)",
            "yes",
            f"first runs take {spread(cold)} times as long as with the cache",
            figures,
            f"{FUSION} --size middle",
            "fusion",
        ),
        (
            "Planning anew in each iteration, *greedy* (Fig. 17)",
            PLOT,
            f"{spread(planned)} times as long as with the cache",
            figures,
            f"{FUSION} --size middle",
            "fusion",
        ),
        ("Without a cache *naive* is faster than *greedy* (Fig. 17)", "yes", f"in {ahead} of 15 programs", figures, f"{FUSION} --size middle", "fusion"),
    ]
