"""
Webhooks: admitting a request, triggering, deliveries and the management of webhooks.

Each name is loaded at its first use; `webhooks.pyi` lists them.
"""

from wfcore._exports import exports

__all__, __getattr__, __dir__ = exports(__name__)
