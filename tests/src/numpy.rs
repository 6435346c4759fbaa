//! NumPy as a second oracle.
