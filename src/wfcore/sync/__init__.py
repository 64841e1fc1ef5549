"""
A door for programs without an event loop: scripts, threads, WSGI applications.

What it opens is assembled outside the core, see `wfserver.embedding.blocking`; as in `wfcore`
itself, each name is loaded when it is asked for, and the stub lists them.
"""

from wfcore._exports import exports

__all__, __getattr__, __dir__ = exports(__name__)
