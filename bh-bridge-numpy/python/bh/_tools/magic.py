"""IPython: `%load_ext bh`, then other packages get NumPy's arrays in all cells, and `%%bh` runs a cell whose `import numpy` means bh."""


def load_ipython_extension(shell):
    """Adds the magic `%%bh`, and has calls of other packages in cells written anew."""
    from IPython.core.error import UsageError

    from .._numpy import imports, loading, rewriting

    def bh(line, cell):
        """Runs a cell with `numpy` and `np` as bh. `%%bh --profile` prints the counters afterwards, and `%%bh --doctor` what slows the cell down."""
        import bh as package

        options = line.split()
        if unknown := [option for option in options if option not in ("--profile", "--doctor")]:
            raise UsageError(f"%%bh takes --profile and --doctor, and not {unknown[0]}")
        if "--doctor" in options:
            package.doctor(watch=True)
        names = shell.user_ns
        before = {name: names[name] for name in ("np", "numpy") if name in names}
        names.update(np=package, numpy=package)
        imports.install()
        loading.install()
        try:
            shell.run_cell(cell)
        finally:
            loading.remove()
            imports.remove()
            for name in ("np", "numpy"):
                names.pop(name, None)
            names.update(before)
            package.flush()
        for option in options:
            print(package.profile() if option == "--profile" else package.doctor())

    shell.register_magic_function(bh, magic_kind="cell", magic_name="bh")
    if loading.is_on() and not any(isinstance(one, rewriting.Cells) for one in shell.ast_transformers):
        shell.ast_transformers.append(rewriting.Cells())
