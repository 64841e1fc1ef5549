"""Executions: starting, running by a worker, reading, explaining, callbacks."""
