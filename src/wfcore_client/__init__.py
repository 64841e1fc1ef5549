"""
A typed client of the API: `AsyncClient` for asyncio, `Client` for everything else.

Both clients send the same calls (`calls`); responses are dataclasses (`shapes`). This package is
the distribution `wfcore-client`. It needs httpx2 and nothing of `wfcore`.
"""

from wfcore_client.asynchronous import AsyncClient
from wfcore_client.backoff import Backoff
from wfcore_client.callbacks import CallbackRefused, verify_callback
from wfcore_client.errors import (
    ApiError,
    BadRequest,
    Conflict,
    Corrupted,
    Forbidden,
    NotFound,
    RateLimited,
    ServerTrouble,
    Unauthorized,
    Unreachable,
)
from wfcore_client.synchronous import Client

__all__ = [
    "ApiError",
    "AsyncClient",
    "Backoff",
    "BadRequest",
    "CallbackRefused",
    "Client",
    "Conflict",
    "Corrupted",
    "Forbidden",
    "NotFound",
    "RateLimited",
    "ServerTrouble",
    "Unauthorized",
    "Unreachable",
    "verify_callback",
]
