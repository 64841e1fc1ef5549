"""
A typed client of the API: `AsyncClient` for asyncio, `Client` for everything else.

Both are the same calls (`calls`) over another transport; answers are the shapes of
`wfcore.wire`. Needs the extra `client`.
"""

from wfcore_client.asynchronous import AsyncClient
from wfcore_client.errors import (
    ApiError,
    BadRequest,
    Conflict,
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
    "BadRequest",
    "Client",
    "Conflict",
    "Forbidden",
    "NotFound",
    "RateLimited",
    "ServerTrouble",
    "Unauthorized",
    "Unreachable",
]
