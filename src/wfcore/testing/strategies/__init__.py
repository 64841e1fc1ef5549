"""Hypothesis strategies for everything of the domain."""
