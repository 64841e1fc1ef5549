"""The use cases: one unit of work each, over the ports."""
