//! Sweeps of small batches.
