"""
Accounts, keys, sessions and secrets: the use cases, and the records that they return.

Each name is loaded at its first use; `accounts.pyi` lists them.
"""

from wfcore._exports import exports

__all__, __getattr__, __dir__ = exports(__name__)
