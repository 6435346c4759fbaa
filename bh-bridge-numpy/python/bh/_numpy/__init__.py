"""The package's ties to NumPy: the registry of its names, calls of NumPy, `import numpy`, warnings, and other libraries."""
