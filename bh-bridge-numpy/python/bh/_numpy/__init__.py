"""What ties the package to NumPy: the registry of its names, what runs in NumPy, `import numpy`, warnings, and other libraries."""
