"""Checks of the machine, the settings and the store, each with a cure."""
