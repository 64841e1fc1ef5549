"""The rules of the specification as pure functions and tables. One idea, one file."""
