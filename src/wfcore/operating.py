"""
Operating a server: audit, evidence, nodes, notices and the keys that sign links.

Each name is loaded at its first use; `operating.pyi` lists them.
"""

from wfcore._exports import exports

__all__, __getattr__, __dir__ = exports(__name__)
