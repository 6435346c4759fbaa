"""`python -m soaking.worker`: runs the programs of a range of seeds on all stacks, and writes what it did, line by line."""

import argparse
import json
import time

from . import programs, shrink
from .judge import checked, on_numpy


def main():
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, required=True, help="the first seed")
    parser.add_argument("--programs", type=int, required=True, help="how many")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long")
    parser.add_argument("stacks", nargs="+", help="names, each with `/N` for every N-th program")
    options = parser.parse_args()
    stacks = [(name, int(turns or 1)) for name, _, turns in (text.partition("/") for text in options.stacks)]
    end = time.monotonic() + options.seconds
    for seed in range(options.first, options.first + options.programs):
        if time.monotonic() > end:
            break
        program = programs.program(seed)
        code = compile(program.text, "<program>", "exec")
        reference = on_numpy(code)
        for stack in (name for name, turns in stacks if seed % turns == 0):
            # Said beforehand: a program that ends the process is known by its last line.
            print(f'["{stack}", {seed}]', flush=True)
            failure = checked(program, code, reference, stack)
            if failure:
                print(json.dumps(_finding(program, stack, failure)), flush=True)


def _finding(program, stack, failure):
    small, last = shrink.shrunk(program, stack)
    line = shrink.line_of(small, last or failure)
    return {"seed": program.seed, "stack": stack, "failure": failure, "shrunk": small.text, "its failure": last, "line": line}


if __name__ == "__main__":
    main()
