"""Configurations that programs run on: the default one first, then named ones, then every key at every value, pairwise."""

import itertools
import os
import random

# Shares of the ranks of clusters.
RANKS = {2: (1, 3), 3: (2, 1, 4), 4: (1, 2, 3, 4), 5: (3, 1, 1, 5, 2), 6: (1, 1, 2, 1, 3, 1), 7: (7, 1, 2, 3, 1, 2, 1), 8: (1, 2, 1, 4, 1, 1, 3, 2)}


def _engine(**keys):
    return {"fuser": {"planning": "full"}, "ve-cpu": {"planning": "full", **keys}}


def _device():
    """Keys with which little work runs on a device, too: on the one that `BH_SOAK_DEVICE` names, or a processor."""
    device = os.environ.get("BH_SOAK_DEVICE", "cpu")
    return {"device": device, "group": 16, "placement": "64 8", "cache_dir": "", "while_building": "off"}


# Stacks by name: the sections of components that get settings of their own.
NAMED = {
    "default": {},
    "full": _engine(threads=1, jit="off"),
    "two-threads": _engine(threads=2, jit="off"),
    "compiled": _engine(threads=1, jit="on", jit_cache_dir=""),
    "compiled-two-threads": _engine(threads=2, jit="on", jit_cache_dir=""),
    "direct": {"fuser": {"planning": "direct"}, "ve-cpu": {"planning": "direct", "threads": 1}},
    "linear": {"fuser": {"planning": "linear"}, "ve-cpu": {"threads": 1}},
    "small-caches": _engine(threads=1, jit="off", window_bytes=4096, stream_bytes=1024),
    "tiles": _engine(threads=1, jit="off", window_bytes=4096, time_tiles="16"),
    **{
        f"tiles-{depth}": {
            "fuser": {"planning": "full", "max_block": block, "rename_percent": 400},
            "ve-cpu": {"planning": "full", "threads": 2, "jit": "off", "window_bytes": size, "time_tiles": depth},
        }
        for depth, block, size in (("auto", 512, 2048), ("1", 512, 8192), ("2", 5, 2048), ("5", 512, 4096), ("16", 9, 16384))
    },
    "singleton": {"fuser": {"algorithm": "singleton", "planning": "full"}, "ve-cpu": {"threads": 1}},
    **{
        f"cluster-{ranks}": {"cluster": {"ranks": ranks, "weights": list(weights), "small_bytes": 16}, "ve-cpu": {"threads": 1, "jit": "off"}}
        for ranks, weights in RANKS.items()
    },
    **{
        f"cluster-even-{ranks}": {"cluster": {"ranks": ranks, "small_bytes": 100, "overlap_bytes": 64, "ahead_percent": 100}, **_engine(threads=1, jit="off")}
        for ranks in (2, 3)
    },
    # Tiles of what each rank has of the arrays.
    **{
        f"cluster-tiles-{ranks}": {
            "cluster": {"ranks": ranks, "weights": list(RANKS[ranks]), "small_bytes": 16},
            "fuser": {"planning": "full", "rename_percent": 400},
            "ve-cpu": {"planning": "full", "threads": 1, "jit": "off", "window_bytes": 4096, "time_tiles": "8"},
        }
        for ranks in (2, 3)
    },
    "cluster-siblings": {"siblings": 3, "cluster": {"weights": [1, 2, 1], "small_bytes": 16, "ahead_percent": 50}, "ve-cpu": {"threads": 1, "jit": "off"}},
    "opencl": {"opencl": _device()},
    # Chains of kernels tile by tile, of which little arrays have several.
    **{
        f"opencl-tiles-{depth}": {"fuser": {"planning": "full", "rename_percent": 400}, "opencl": {**_device(), "group": group, "time_tiles": depth}}
        for depth, group in (("2", 16), ("4", 64), ("16", 16))
    },
    "opencl-siblings": {"siblings": "*", "cluster": {"small_bytes": 16, "overlap_bytes": 64}, "opencl": _device()},
    # Two ranks in one process, or as many as a launcher starts.
    "opencl-ranks": {"cluster": {"small_bytes": 16}, "opencl": _device()},
}  # fmt: skip

# Every key that must not change results, with values on both sides of what it decides. The first of each is the default.
KEYS = {
    ("filter", "passes"): (None, [], ["simplify", "programs", "dead-code"], ["common", "copies"], ["collect", "reduction-chain", "matmul"]),
    ("filter", "pieces_from"): (32768, 1, 50),
    ("fuser", "algorithm"): ("greedy", "singleton", "naive", "unintrusive", "optimal"),
    ("fuser", "cost_model"): ("traffic", "unique-views", "max-contraction"),
    ("fuser", "legality"): ("full", "paper"),
    ("fuser", "renames"): (True, False),
    ("fuser", "rename_percent"): (25, 0, 100),
    ("fuser", "max_block"): (512, 1, 3, 17),
    ("fuser", "optimal_steps"): (100000, 10),
    ("fuser", "planning"): ("auto", "direct", "linear", "full"),
    ("fuser", "cache_bytes"): (67108864, 0),
    ("ve-cpu", "threads"): (1, 2),
    ("ve-cpu", "windows"): ("auto", "off"),
    ("ve-cpu", "time_tiles"): ("auto", "off", "2", "16"),
    ("ve-cpu", "superinstructions"): ("auto", "off"),
    ("ve-cpu", "planning"): ("auto", "direct", "full"),
    ("ve-cpu", "plan_bytes"): ("auto", "4KiB"),
    ("ve-cpu", "window_bytes"): ("auto", 2048),
    ("ve-cpu", "stream_bytes"): ("auto", 512, "none"),
    ("ve-cpu", "jit"): ("off", "auto", "on"),
    ("ve-cpu", "isa"): ("auto", "sse2", "portable", "avx2"),
    ("ve-cpu", "divider"): ("auto", "slow", "fast"),
}
# Keys of the whole process, one set for each run of a worker.
RECORDERS = (
    {}, {"max_instructions": 3}, {"recipes": "always"}, {"small_bytes": 0}, {"max_instructions": 40, "small_bytes": 512}, {"max_bytes": 4096},
    {"recipes": "always", "max_instructions": 5, "immediate_bytes": 64}, {"recipes": "always", "max_bytes": 4096, "small_bytes": 0},
)  # fmt: skip


def _pairs(row):
    return set(itertools.combinations(row, 2))


def pairwise(seed=1):
    """Settings of all keys, few of them, in which every value of a key meets every value of every other key."""
    source = random.Random(seed)
    keys = list(KEYS)
    at = lambda: tuple((key, source.randrange(len(KEYS[key]))) for key in keys)
    open_pairs = set()
    for one, other in itertools.combinations(keys, 2):
        open_pairs |= {((one, a), (other, b)) for a in range(len(KEYS[one])) for b in range(len(KEYS[other]))}
    rows = []
    while open_pairs:
        row = max((_holding(source, at(), source.choice(sorted(open_pairs))) for _ in range(10)), key=lambda row: len(_pairs(row) & open_pairs))
        open_pairs -= _pairs(row)
        rows.append({key: KEYS[key][number] for key, number in row})
    return rows


def _holding(source, row, pair):
    return tuple(dict([*row, *pair]).items())


def pairwise_stacks():
    """The stacks of the pairwise settings, by name."""
    stacks = {}
    for number, row in enumerate(pairwise()):
        if row["fuser", "algorithm"] == "optimal" and row["fuser", "cost_model"] == "traffic":
            row["fuser", "cost_model"] = "unique-views"  # The search needs a monotone model.
        sections = {}
        for (component, key), value in row.items():
            if value is not None:
                sections.setdefault(component, {})[key] = value
        sections["ve-cpu"]["jit_cache_dir"] = ""
        stacks[f"pair-{number}"] = sections
    return stacks


def turns(settings):
    """Of how many programs one runs on such a stack, as compilers take long."""
    if "opencl" in settings:
        return 200
    return 40 if settings.get("ve-cpu", {}).get("jit") == "on" else 1


LIBRARIES = {"filter": "bh_filter", "cluster": "bh_vem_cluster", "fuser": "bh_fuser", "node": "bh_vem_node", "opencl": "bh_ve_opencl", "ve-cpu": "bh_ve_cpu"}


def _value(value):
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return str(value).lower() if isinstance(value, (bool, int)) else f'"{value}"'


def configuration(stacks, recorder=None):
    """The text of a configuration with these stacks, each component with settings under a name of its own."""
    lines, sections = ["[stacks]"], []
    for name, settings in stacks.items():
        items = []
        for component in LIBRARIES:
            if component in ("cluster", "opencl") and component not in settings:
                continue
            label = f"{component}-{name}" if component in settings else component
            items.append(f'"{label}"')
            if component in settings:
                keys = "".join(f"{key} = {_value(value)}\n" for key, value in settings[component].items())
                sections.append(f'[components.{label}]\nlibrary = "{LIBRARIES[component]}"\n{keys}')
        if settings.get("siblings") == "*":
            label = f"opencl-{name}"
            items = [*items[:2], f"[[{', '.join(items[2:])}]]".replace(label, f"{label}*")]
        elif "siblings" in settings:
            below = f"[{', '.join(items[2:])}]"
            items = [*items[:2], f"[{', '.join([below] * settings['siblings'])}]"]
        lines.append(f"{name} = [{', '.join(items)}]")
    if "default" not in stacks:
        lines.append(f'default = "{next(iter(stacks))}"')
    keys = "".join(f"{key} = {_value(value)}\n" for key, value in (recorder or {}).items())
    return "\n".join([*lines, "[recorder]\n" + keys, *sections])
