"""The HTTP door: one table of routes over the use cases."""
