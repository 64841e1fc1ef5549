"""
Workflows beyond applying and reading one: versions, shares, summaries and triggers.

Each name is loaded at its first use; `workflows.pyi` lists them.
"""

from wfcore._exports import exports

__all__, __getattr__, __dir__ = exports(__name__)
