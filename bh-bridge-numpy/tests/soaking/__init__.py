"""Random programs as people write them, run on bh and on NumPy: how they are made, run, compared and made smaller."""
