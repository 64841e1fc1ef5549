"""Packages of code steps: pip and npm, and the folders that keep what they installed."""
