"""The HTTP adapter: one table of routes over the use cases."""
