"""IPython: `%load_ext bh`, then `%%bh` runs a cell whose `import numpy` means bh."""


def load_ipython_extension(shell):
    """Adds the magic `%%bh`."""
    from .._numpy import imports

    def bh(line, cell):
        """Runs a cell with `numpy` and `np` as bh."""
        import bh as package

        names = shell.user_ns
        before = {name: names[name] for name in ("np", "numpy") if name in names}
        names.update(np=package, numpy=package)
        imports.install()
        try:
            shell.run_cell(cell)
        finally:
            imports.remove()
            for name in ("np", "numpy"):
                names.pop(name, None)
            names.update(before)
            package.flush()

    shell.register_magic_function(bh, magic_kind="cell", magic_name="bh")
