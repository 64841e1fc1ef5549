"""
The use cases for programs without an event loop: scripts, threads, WSGI applications.

The services are assembled outside the core, see `wfserver.embedding.blocking`. As in `wfcore`, each
name is loaded at its first use, and the stub lists all names.
"""

from wfcore._exports import exports

__all__, __getattr__, __dir__ = exports(__name__)
