"""Explanations of an execution's state, in words."""
