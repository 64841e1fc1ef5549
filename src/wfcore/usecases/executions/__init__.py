"""Executions: started, run by a worker, read, explained, called back."""
