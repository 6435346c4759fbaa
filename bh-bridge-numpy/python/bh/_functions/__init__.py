"""NumPy's functions on arrays, one subject in each module; `numpy_code` runs NumPy's own code over them."""
