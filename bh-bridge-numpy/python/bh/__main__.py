"""`python -m bh [--stack S] [--profile] [--doctor] [--report PAGE] [--live] [--check] [--check-nan] [--digits] [--float32 NAMES] [--backend B] script.py [arguments]`: runs a script whose `import numpy` means bh."""

import argparse
import importlib.util
import os
import runpy
import sys


def _parser():
    """The parser of the command line."""
    parser = argparse.ArgumentParser(prog="python -m bh", description=__doc__)
    parser.add_argument("--stack", help="the stack of components to run on")
    parser.add_argument("--profile", action="store_true", help="print counters at the end")
    parser.add_argument("--doctor", action="store_true", help="print what slows the script down, with lines, at the end")
    parser.add_argument("--report", metavar="PAGE", help="write a page of HTML that shows where the time went")
    parser.add_argument("--live", action="store_true", help="serve that page on this machine while the script runs, at an address that is printed")
    parser.add_argument("--info", action="store_true", help="print versions and components, and run nothing")
    parser.add_argument("--check", action="store_true", help="run twice, as configured and operation by operation, and name what differs first")
    parser.add_argument("--check-nan", action="store_true", help="name the operation that makes the first NaN, and its line, at full speed")
    parser.add_argument("--digits", action="store_true", help="print at the end how many decimal digits the results of each line keep")
    parser.add_argument("--float32", metavar="NAMES", help="run the script once for each line, with its arrays in single precision, and print the digits that these variables (a,b,...) keep")
    parser.add_argument("--backend", metavar="B", help="what NumPy is built on: bh (the default), numpy, numexpr, or a back end of an installed package")
    parser.add_argument("--with", dest="named", metavar="NAME", action="append", default=[], help="an installed package whose numpy is bh too")
    parser.add_argument("--views", metavar="NAME", action="append", default=[], help="a package whose functions get NumPy's arrays, over the memory of bh's, although it is known to take those of bh")
    parser.add_argument("-m", dest="module", action="store_true", help="the script is the name of a module")
    parser.add_argument("script", nargs="?", help="the script to run")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script gets as arguments")
    return parser


def main():
    """Runs the command line."""
    parser = _parser()
    options = parser.parse_args()
    if options.backend not in (None, "bh") and any((options.stack, options.check, options.report, options.live, options.doctor, options.check_nan, options.digits, options.float32)):
        parser.error("--stack, --check, --check-nan, --digits, --float32, --report, --live and --doctor are for the back end bh")
    if options.stack:
        os.environ["BH_STACK"] = options.stack
    if options.check_nan:
        os.environ["BH_CHECK"] = "nan"
    import bh
    from ._numpy import imports, loading

    if options.info:
        print(bh.info(), end="")
        return
    if options.script is None:
        parser.error("a script is needed")
    sys.path[0] = os.getcwd() if options.module else os.path.dirname(os.path.abspath(options.script))
    for option, names in (("--with", options.named), ("--views", options.views)):
        for name in names:
            if not name or importlib.util.find_spec(name.partition(".")[0]) is None:
                parser.error(f"{option}: there is no package named {name!r}")
    again = [*(f"--with={name}" for name in options.named), *(f"--views={name}" for name in options.views), *(["-m"] if options.module else []), options.script, *options.arguments]
    if options.check:
        from ._tools import check as _check

        sys.exit(_check.check(again))
    if options.report or options.live:
        from ._tools import report as _report

        if options.report and (reason := _report.obstacle(options.report)):
            parser.error(f"--report {options.report}: {reason}")
        shown = [f"--{name}" for name in ("profile", "doctor", "digits") if getattr(options, name)]
        sys.exit(_report.run(options.report, options.live, [*shown, *again]))
    recording = _recording()
    if options.backend not in (None, "bh"):
        imports.stand = _on_backend(parser, options.backend)
    else:
        # The stack is made before any line of the script, so that other ranks of a cluster never see it.
        bh.Stack()
    leaving = _leaving()
    if options.doctor and hasattr(bh, "_native"):
        from ._tools import doctor as _doctor

        _doctor.begin()
    if options.digits and not options.float32:
        bh.digits(watch=True)
    sys.argv = [options.script, *options.arguments]
    imports.named.update(options.named)
    imports.shown.update(options.views)
    if options.module:
        imports.named.add(options.script.partition(".")[0])
    imports.install()
    if imports.stand is None and hasattr(bh, "_native"):
        loading.install()
    try:
        def run():
            return runpy.run_module(options.script, run_name="__main__", alter_sys=True) if options.module else loading.run(options.script)

        if options.float32:
            from ._tools import narrow as _narrow

            print(_narrow.of_script(run, options.float32.split(",")), file=sys.stderr)
            return
        names = run()
        if recording:
            recording.end(names)
    finally:
        loading.remove()
        imports.remove()
        if leaving:
            leaving.end(options.digits)
        if options.doctor:
            print(bh.doctor(), file=sys.stderr)
        if options.digits and not options.float32:
            print(bh.digits(), file=sys.stderr)
        if options.profile:
            print(bh.profile() if imports.stand is None else imports.stand._work.report(), file=sys.stderr)
        if (options.profile or options.doctor) and imports.report():
            print(imports.report(), file=sys.stderr)


def _on_backend(parser, name):
    """NumPy on a back end, for the script."""
    from .backends.layer import numpy_on

    try:
        return numpy_on(name)
    except (ImportError, ValueError) as error:
        parser.error(f"back end {name}: {error}")


def _leaving():
    """An object that leaves the doctor's findings for a page, if bh has its native library."""
    import bh

    if not hasattr(bh, "_native"):
        return None
    from ._tools import report as _report

    return _report.Leaving()


def _recording():
    """A recorder of the values that the script reads, in the two runs of `--check`."""
    path = os.environ.pop("BH_CHECK_RECORD", None)
    if path is None:
        return None
    from ._tools import check as _check

    recording = _check.Recording(path)
    recording.begin()
    return recording


if __name__ == "__main__":
    main()
