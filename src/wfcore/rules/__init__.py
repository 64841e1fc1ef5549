"""The rules of the specification as pure functions and tables. One idea, one file."""

from wfcore._exports import exports

__all__, __getattr__, __dir__ = exports(__name__)
