"""
A typed client of the API: `AsyncClient` for asyncio, `Client` for everything else.

Both send the same calls (`calls`); responses are dataclasses (`shapes`). It needs httpx2 alone
and nothing of `wfcore`: the distribution `wfcore-client` is this package.
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
