"""Measurements as ratios within one run. `python -m bench` prints the table."""
