#!/usr/bin/env python3
"""Writes the tables and pictures of the docs anew from the measurements in benches/results/.

    benches/report.py [--check]

Each table stands between `<!-- table NAME -->` and `<!-- end -->`. With --check, pages are compared and not written. The files
are the JSON of `run.py` (programs, and papers_programs), `rivals.py` (rivals), `loops.py` (loops), `fusion.py` (fusion), `specialise.py` (specialise, and
specialise_pocl), `micro.py` (micro), `ranks_threads.py` (ranks_threads), `scalars_gpu.py` (scalars_gpu), `by_hand.py` (by_hand), `cxx.py` (cxx), `access.py` (access), `backends.py --programs` (backends), `transparent.py` (transparent, and transparent_papers), `hosts.py` (hosts), `objects.py` (objects), `graphs.py` (graphs), `paper_sizes.py` (paper_sizes), and of `device.py` with the figures of other systems on the same card (gpu).
"""

import argparse
import re
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent / "common")]
import claims
import fusion_plot
import svg
from claims import affine, bohrium, firepile, jit4opencl, lime
from figures import number, read, table

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
PAGES = [DOCS / "PERFORMANCE.md", DOCS / "fusion.md", DOCS / "backends.md", DOCS / "scalars.md", *sorted((DOCS / "papers").glob("*.md"))]
# Bytes that a step has to move to and from memory, for programs that memory limits: n to bytes.
TRAFFIC = {
    "heat_equation": lambda n: 16 * n**2, "game_of_life": lambda n: 16 * n**2, "stencil_27_point": lambda n: 16 * n**3,
    "shallow_water": lambda n: 48 * n**2, "rosenbrock": lambda n: 8 * n, "sor": lambda n: 16 * n**2,
    "lattice_boltzmann_d2q9": lambda n: 144 * n**2, "lattice_boltzmann_d3q19": lambda n: 304 * n**3,
    "stencil_1d": lambda n: 16 * n, "stencil_2d": lambda n: 16 * n**2, "stencil_3d": lambda n: 16 * n**3,
}  # fmt: skip
SYSTEMS = {"bh": "bh", "numpy": "NumPy", "numexpr_arrays": "numexpr", "numba_arrays": "Numba, arrays",
           "numba_loops": "Numba, loops", "jax_arrays": "JAX", "torch_arrays": "PyTorch"}  # fmt: skip


def programs():
    rows = []
    for row in read("programs"):
        n, mine, name = row["n"], row["seconds"], row["bench"]
        moved = TRAFFIC[name](n) * row["iters"] / mine / 1e9 if name in TRAFFIC else None
        cells = [number(1e3 * value) for value in (mine, row["twin_seconds"], row["numpy_seconds"])]
        ratios = [number(row[other] / mine) for other in ("twin_seconds", "numpy_seconds")]
        rows.append([f"{name} {n} × {row['iters']}", *cells, *ratios, number(moved)])
    return table(["program", "bh ms", "C ms", "NumPy ms", "C / bh", "NumPy / bh", "GB/s"], rows)


def rivals():
    rows = []
    for row in read("rivals")["programs"]:
        seconds = row["seconds"]
        ratio = lambda name: number(seconds[name] / seconds["bh"]) if name in seconds else ""
        cells = [number(1e3 * seconds["bh"]), *(ratio(name) for name in SYSTEMS if name != "bh")]
        rows.append([f"{row['bench']} {row['n']} × {row['iters']}", *cells])
    return table(["program", "bh ms", *(name for name in SYSTEMS.values() if name != "bh")], rows)


def loops():
    found = read("loops")
    sizes = sorted({row["n"] for row in found})
    rows = []
    for name in sorted({row["loop"] for row in found}):
        cells = []
        for size in sizes:
            row = next(row for row in found if (row["loop"], row["n"]) == (name, size))
            cells += [number(1e3 * row["first"]), *(number(row["numpy"] / row[run]) for run in ("first", "later"))]
        rows.append([name, *cells])
    titles = [title for size in sizes for title in (f"n = {size}: first ms", "NumPy / first", "NumPy / later")]
    return table(["loop", *titles], rows)


def gpu():
    fields = ("auto", "arguments", "text", "floor", "by_hand", "jax", "cupy")
    rows = [[row["program"], *(number(row[field]) for field in fields)] for row in read("gpu")["steps"]]
    return table(["program", "bh", "sizes as arguments", "sizes in the text", "floor", "by hand", "JAX", "CuPy"], rows)


def papers():
    rows = []
    for row in read("gpu")["papers"]:
        times = [number(1e3 * row[field]) for field in ("cold", "first", "later", "host")]
        rows.append([row["program"], row["papers"], *times])
    return table(["program", "paper", "first, empty caches", "first", "later", "CPU engine, later"], rows)


# The letter of each paper's programs.
LETTERS = {"jit4opencl": "J", "firepile": "F", "affine": "A", "lime": "L"}


def of_paper(name):
    rows = []
    for row in read("gpu")["papers"]:
        if LETTERS[name] in row["papers"]:
            times = [number(1e3 * row[field]) for field in ("first", "later", "host")]
            rows.append([row["program"], *times, *(number(row["host"] / row[field]) for field in ("first", "later"))])
    return table(["program", "GPU, first ms", "later ms", "cores ms", "cores / first", "cores / later"], rows)


papers_jit4opencl, papers_firepile, papers_affine, papers_lime = (lambda name=name: of_paper(name) for name in LETTERS)
claims_jit4opencl, claims_firepile, claims_affine, claims_lime = (lambda rows=paper.rows: claims.made(rows()) for paper in (jit4opencl, firepile, affine, lime))
BOHRIUM = (bohrium.cphvb, bohrium.unmodified, bohrium.virtual_machine, bohrium.transparent, bohrium.npbackend, bohrium.specialisation, bohrium.fusion)
claims_cphvb, claims_unmodified, claims_virtual_machine, claims_transparent, claims_npbackend, claims_specialisation, claims_fusion = (
    lambda rows=rows: claims.made(rows())
    for rows in BOHRIUM
)


def papers_counted():
    papers = {"Jit4OpenCL": jit4opencl.rows(), "Firepile": firepile.rows(), "Affine loop nests": affine.rows(), "Lime": lime.rows()}
    return claims.counted(papers | {"Bohrium": [claim for paper in BOHRIUM for claim in paper()]})


def papers_transparent():
    rows = []
    for row in read("transparent")["rows"]:
        times = [number(1e3 * row[form]) for form in ("numpy", "first", "step")]
        faster = [number(row["numpy"] / row[form]) for form in ("first", "step")]
        rows.append([row["program"], f"{row['n']:,}", row["dtype"], *times, *faster])
    return table(["program", "n", "type", "NumPy ms", "bh, first ms", "bh, later ms", "NumPy / first", "NumPy / later"], rows)


def papers_on_card():
    rows = []
    for row in read("transparent_papers")["rows"]:
        times = [number(1e3 * row[form]) for form in ("numpy", "cpu_step", "first", "step")]
        faster = [number(row["numpy"] / row[form]) for form in ("cpu_step", "first", "step")]
        rows.append([row["program"], f"{row['n']:,} × {row['iterations']}", row["paper"], *times, *faster])
    heads = ["program", "n × iterations", "paper", "NumPy ms", "cores ms", "card, first ms", "card, later ms"]
    return table([*heads, "NumPy / cores", "NumPy / first", "NumPy / later"], rows)


def hosts():
    rows = []
    for run in read("hosts")["runs"]:
        for row in run["rows"]:
            ways = [number(row["ways"][way]) if way in row["ways"] else "" for way in ("bh", "send each", "wait", "parts")]
            cells = [str(run["hosts"]), number(row["delay"]), number(row["alone"]), *ways]
            rows.append([f"{row['program']} {row['size']}", *cells, number(row["alone"] / row["ways"]["bh"])])
    return table(["program", "hosts", "delay ms", "one rank ms", "bh ms", "sent each iteration", "waiting", "in parts", "one rank / bh"], rows)


def paper_sizes():
    rows = []
    for row in read("paper_sizes")["rows"]:
        if row["paper"] != "fusion":
            rows.append([row["program"], f"{row['n']:,} × {row['iterations']}", row["paper"], number(row["seconds"]["numpy"] / row["seconds"]["bh"])])
    return table(["program", "n × iterations", "paper", "NumPy / bh"], rows)


def paper_sizes_fusion():
    rows = []
    for row in read("paper_sizes")["rows"]:
        if row["paper"] == "fusion":
            seconds = row["seconds"]
            ratios = [number(seconds[way] / seconds["greedy"]) if {way, "greedy"} <= seconds.keys() else "–" for way in ("singleton", "naive")]
            rows.append([row["program"], f"{row['n']:,} × {row['iterations']}", *ratios])
    return table(["program", "n × iterations", "singleton / greedy", "naive / greedy"], rows)


def papers_more():
    rows = []
    for row in read("papers_programs"):
        times = [row[form] for form in ("seconds", "twin_seconds", "numpy_seconds")]
        rows.append([f"{row['bench']} {row['n']} × {row['iters']}", *(number(1e3 * value) for value in times), *(number(value / times[0]) for value in times[1:])])
    return table(["program", "bh ms", "C by hand ms", "NumPy ms", "C / bh", "NumPy / bh"], rows)


def papers_specialisation():
    rows = [[row["program"], *(number(row[way]) for way in ("arguments", "text", "auto"))] for row in read("gpu")["steps"]]
    return table(["program", "sizes as arguments", "in the text", "chosen"], rows)


def cxx():
    rows = []
    for row in read("cxx")["programs"]:
        seconds = row["seconds"]
        ratios = [number(seconds[form] / seconds["bh"]) for form in ("blitz", "armadillo")]
        rows.append([f"{row['program']} {row['n']} × {row['iters']}", *(number(1e3 * seconds[form]) for form in ("bh", "twin", "blitz", "armadillo")), *ratios])
    return table(["program", "bh ms", "C by hand ms", "Blitz++ ms", "Armadillo ms", "Blitz++ / bh", "Armadillo / bh"], rows)


BACK_ENDS = ["NumPy alone", "numpy", "numpy, nothing kept", "numexpr", "bh", "numpy, products left", "numexpr, products left"]


def backends():
    rows = []
    for row in read("backends")["programs"]:
        cells = [number(1e3 * row["seconds"][form]) if form in row["seconds"] else "" for form in BACK_ENDS]
        rows.append([f"{row['program']} {row['n']} × {row['iters']}", *cells])
    return table(["program", *BACK_ENDS], rows)


def access():
    rows = [[row["case"].replace(" x ", " × "), *(number(row[system]) for system in ("bh", "numpy"))] for row in read("access")["rows"]]
    return table(["sums of", "bh, GPU", "NumPy"], rows)


def graphs():
    rows = []
    for row in read("graphs")["programs"]:
        rows.append([f"{row['program']} {row['n']}", *(number(1e3 * row[form]) for form in ("numpy", "graph")), number(row["numpy"] / row["graph"])])
    return table(["program", "NumPy ms", "graph ms", "times as fast"], rows)


ALGORITHMS = ["singleton", "naive", "unintrusive", "greedy", "optimal"]


def fusion_costs():
    rows = []
    for name, found in read("fusion")["programs"].items():
        cells = [f"{number(found[way]['cost'] / 1e6)} ({found[way]['kernels']})" for way in ALGORITHMS]
        rows.append([name, *cells[:-1], cells[-1] + ("" if found["optimal"]["in_budget"] else " *")])
    return table(["program", *ALGORITHMS], rows)


def fusion_times():
    rows = []
    for name, found in read("fusion")["programs"].items():
        rows.append([name, *(" / ".join(number(1e3 * found[way]["seconds"][use]) for use in ("warm", "cold", "none")) for way in ALGORITHMS)])
    return table(["program", *ALGORITHMS], rows)


# Times as fast with kernels that were selected as with dynamic ones, in the paper: by card and type, for each of the six programs.
SELECTED = {
    "GTX 680, double": (1.05, 1.06, 1.14, 1.64, 0.99, 0.95), "GTX 680, single": (1.01, 1.02, 1.01, 2.49, 1.00, 0.97),
    "HD 7970, double": (1.00, 1.00, 1.19, 1.02, 1.00, 1.00), "HD 7970, single": (1.01, 1.24, 2.18, 1.80, 1.00, 1.01),
}  # fmt: skip
SIX = {"stencil_1d": "1D stencil", "stencil_2d": "2D", "stencil_3d": "3D", "stencil_4d": "4D", "gauss": "Gauss", "lu": "LU"}
WAYS = ["dynamic", "fixed", "selected"]


def specialised(dtype):
    """The three ways of each of the six programs that were measured with a type."""
    return {row["program"]: row["ways"] for row in read("specialise")["programs"] if row["dtype"] == dtype}


def selected():
    rows = [[card, *(f"{value:.2f}" for value in values)] for card, values in SELECTED.items()]
    for dtype, words in (("f64", "double"), ("f32", "single")):
        for column, what in (("application", ""), ("kernels", ", kernels alone")):
            for way in ("selected", "fixed"):
                found = specialised(dtype)
                gains = [found[name]["dynamic"][column] / found[name][way][column] if name in found else None for name in SIX]
                rows.append([f"bh, H100, {words}{what}, {way}", *(f"{gain:.2f}" if gain else "" for gain in gains)])
    return table(["", *SIX.values()], rows)


def specialise(name="specialise"):
    rows = []
    for row in read(name)["programs"]:
        ways = row["ways"]
        cells = [number(1e3 * ways[way][column]) for column in ("application", "kernels", "compile") for way in WAYS]
        rows.append([f"{row['program']} {row['n']} × {row['steps']}", row["dtype"], *cells, " / ".join(f"{ways[way]['built']:.0f}" for way in WAYS)])
    titles = [f"{what}, {way}" for what in ("all", "kernels", "compiler") for way in WAYS]
    return table(["program", "type", *titles, "kernels built"], rows)


def specialise_pocl():
    return specialise("specialise_pocl")


def scalars_gpu():
    rows = []
    for row in read("scalars_gpu")["programs"]:
        hand, kernel, call = (row[form] for form in ("by_hand", "kernel", "call"))
        rows.append([f"`{row['program']}`", *map(number, (hand, kernel, call)), f"{hand / kernel:.2f}", f"{hand / call:.2f}"])
    return table(["program", "by hand", "bh's kernel", "bh's call", "by hand / kernel", "by hand / call"], rows)


def objects():
    rows = []
    for row in read("objects")["programs"]:
        rows.append([f"`{row['program']}`", *(number(1e3 * row[form]) for form in ("numpy", "plain", "bh")), *(f"{row[form] / row['bh']:.2f}" for form in ("numpy", "plain"))])
    return table(["program", "Python ms", "numbers alone ms", "objects and lists ms", "Python / objects", "numbers / objects"], rows)


def micro_global():
    found = read("micro")
    rows = [[str(row["stride"]), *map(number, row["gb_s"])] for row in found["global"]]
    return table(["stride", *(f"groups of {group}" for group in found["groups"])], rows)


def micro_local():
    rows = [row for row in read("micro")["local"]]
    return table(["stride", *(str(row["stride"]) for row in rows)], [["GB/s", *(number(row["gb_s"]) for row in rows)]])


def micro_unrolled():
    rows = read("micro")["unrolled"]
    return table(["unrolled by", *(str(row["factor"]) for row in rows)], [["billions a second", *(number(row["billions"]) for row in rows)]])


def micro_vectors():
    forms = ["mv_direct", "mv_shared", "mv_padded", "tmv_blocks", "tmv_cyclic"]
    rows = [[str(row["n"]), *(number(row[form]) for form in forms)] for row in read("micro")["vectors"]]
    return table(["n", "mv, direct", "mv, local memory", "mv, padded", "tmv, blocks", "tmv, cyclic"], rows)


def ranks_threads():
    programs = read("ranks_threads")["programs"]
    ways = [(way["ranks"], way["threads"]) for way in programs[0]["ways"]]
    rows = []
    for program in programs:
        seconds = [way["seconds"] for way in program["ways"]]
        rows.append([f"{program['program']} {program['n']} × {program['iters']}", *(number(1e3 * value) for value in seconds)])
        rows.append(["times one core", *(f"{seconds[0] / value:.1f}" for value in seconds)])
    return table(["ranks × threads", *(f"{ranks} × {threads}" for ranks, threads in ways)], rows)


def by_hand(name):
    letter = LETTERS[name]
    fields = ("by_hand", "by_hand_kernels", "vendor", "vendor_kernels", "bh", "kernels")
    rows = []
    for row in read("by_hand")["programs"]:
        if letter in row["papers"]:
            # The counter has no time for kernels of the vendor's library.
            times = [number(1e3 * row[field] if row[field] else None) for field in fields]
            best = min(filter(None, (row["by_hand_kernels"], row["vendor_kernels"])))
            rows.append([row["program"], *times, number(row["by_hand"] / row["bh"]), number(best / row["kernels"] if row["kernels"] else None)])
    titles = ("by hand ms", "its kernels", "cuBLAS ms", "its kernels", "bh ms", "its kernels", "by hand / bh", "best kernels / bh's")
    return table(["program", *titles], rows)


by_hand_jit4opencl, by_hand_firepile, by_hand_affine, by_hand_lime = (lambda name=name: by_hand(name) for name in LETTERS)


def breakdown():
    phases = ("analysis", "compile", "transfer", "kernels")
    rows = []
    for row in read("by_hand")["programs"]:
        if "J" in row["papers"]:
            rows.append([row["program"], number(1e3 * row["first"]), *(number(1e3 * row["phases"][phase]) for phase in phases)])
    return table(["program", "first run ms", *phases], rows)


def sizes():
    """The programs that Jit4OpenCL measures over sizes, on the processor and on the device."""
    rows = []
    for row in read("by_hand")["programs"]:
        if "J" in row["papers"]:
            times = [number(row[field] and 1e3 * row[field]) for field in ("numpy", "c", "cores", "first", "bh")]
            gains = [number(row[field] and row[field] / row["bh"]) for field in ("numpy", "c", "cores")]
            rows.append([row["program"], *times, *gains])
    return table(["program", "NumPy ms", "C ms", "bh, cores", "bh, GPU, first", "later", "NumPy / GPU", "C / GPU", "cores / GPU"], rows)


def placements():
    found = read("gpu")["placements"]
    rows = [[name, *(number(1e3 * lines[name]) for lines in found.values())] for name in found["none"]]
    return table(["program", *found], rows)


COLOURS = {"bh": "#d55e00", "numpy": "#999999", "numba_loops": "#0072b2", "jax_arrays": "#009e73", "torch_arrays": "#e69f00"}


def bars(title, rows, systems, low, high, marks):
    """Bars on a logarithmic axis with a title: for each row its name and how many times as fast each system is."""
    left, bar, gap, width = 150, 9, 12, 720
    height = 78 + len(rows) * (len(systems) * bar + gap)
    x_of = svg.axis(low, high, left, width - left - 20)
    parts = svg.legend(left, 22, systems, 120)
    for value in marks:
        parts += [svg.line(x_of(value), 34, x_of(value), height - 36), svg.text(x_of(value), height - 22, f"{value}×", anchor="middle")]
    parts.append(svg.text((left + width - 20) / 2, height - 6, title, anchor="middle"))
    top = 38
    for name, ratios in rows:
        parts.append(svg.text(left - 8, top + len(systems) * bar / 2 + 4, name.replace("_", " "), anchor="end"))
        for at, (times, (_, colour)) in enumerate(zip(ratios, systems)):
            begin, end = sorted((x_of(1), x_of(times)))
            parts.append(svg.rect(begin, top + at * bar, max(end - begin, 1), bar - 1, colour))
        top += len(systems) * bar + gap
    return svg.page(width, height, parts)


def against_numpy():
    """How many times as fast as NumPy each system runs each program."""
    systems = [name for name in COLOURS if name != "numpy"]
    rows = [(row["bench"], [row["seconds"]["numpy"] / row["seconds"][name] for name in systems]) for row in read("rivals")["programs"]]
    return bars("times as fast as NumPy, logarithmic", rows, [(SYSTEMS[name], COLOURS[name]) for name in systems], 0.5, 600, (1, 3, 10, 30, 100, 300))


def against_c():
    """How many times as fast as C bh runs each program."""
    rows = [(row["bench"], [row["twin_seconds"] / row["seconds"]]) for row in read("programs")]
    return bars("times as fast as C, logarithmic", sorted(rows, key=lambda row: -row[1][0]), [("bh", COLOURS["bh"])], 0.1, 6, (0.1, 0.2, 0.5, 1, 2, 5))


def fusion_picture():
    """Run times of the fusion paper's programs by algorithm and use of the cache."""
    return fusion_plot.page(None, read("fusion")["programs"])


PICTURES = {"fusion.svg": fusion_picture, "performance.svg": against_numpy, "performance-c.svg": against_c}


def filled(page):
    """The text of a page, with its tables made anew."""
    text = page
    for name in re.findall(r"<!-- table (\w+) -->", page):
        pattern = rf"(<!-- table {name} -->\n).*?(<!-- end -->)"
        made = globals()[name]() + "\n"
        if "<!-- table" in re.search(pattern, text, re.DOTALL)[0][len("<!-- table") :]:
            sys.exit(f"{page[:40]!r}…: table {name} has no end")
        text = re.sub(pattern, lambda match: match[1] + made + match[2], text, flags=re.DOTALL)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a page or a picture would change")
    args = parser.parse_args()
    made = {path: filled(path.read_text()) for path in PAGES} | {DOCS / name: draw() for name, draw in PICTURES.items()}
    if args.check:
        if changed := [path.name for path, text in made.items() if path.read_text() != text]:
            sys.exit(f"{', '.join(changed)}: not what benches/report.py makes of benches/results")
        return
    for path, text in made.items():
        path.write_text(text)


if __name__ == "__main__":
    main()
