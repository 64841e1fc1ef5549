"""The life of an execution: its machine, its plan, and what each fact makes of it."""
