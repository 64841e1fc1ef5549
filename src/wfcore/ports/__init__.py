"""
The ports of the core as Protocols: the services that the core needs from outside. Each port has a
file of its own. Adapters implement the ports; contracts test the adapters.
"""

from wfcore._exports import exports

__all__, __getattr__, __dir__ = exports(__name__)
