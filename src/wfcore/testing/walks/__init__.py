"""Stateful tests: random walks through the machines."""
