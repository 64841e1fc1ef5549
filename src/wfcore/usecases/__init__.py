"""The use cases. Each use case is one unit of work over the ports."""
