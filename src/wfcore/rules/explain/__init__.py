"""Why an execution is where it is, in words."""
