"""Measurements: ratios in one run on one machine. `python -m benchmarks` prints them; timings live nowhere else."""
