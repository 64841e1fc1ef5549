"""
The parts of an engine: claiming, running, sweeping and the queues of calls and notices.

Each name is loaded at its first use; `worker.pyi` lists them.
"""

from wfcore._exports import exports

__all__, __getattr__, __dir__ = exports(__name__)
