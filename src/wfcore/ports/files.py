"""Where the content of artifacts is kept."""

from collections.abc import AsyncIterator
from typing import BinaryIO, Protocol

from attrs import frozen


@frozen
class StoredFile:
    storage_key: str
    size: int
    sha256: str


class ArtifactFiles(Protocol):
    """Content by storage key. Stored before the record that names it, durable on return."""

    async def store(self, execution_id: str, artifact_id: str, content: BinaryIO) -> StoredFile:
        """Copy *content* from its position to its end. Raises `StoreUnavailable`."""

    def read(self, storage_key: str, start: int, end: int) -> AsyncIterator[bytes]:
        """
        The bytes [*start*, *end*) in chunks. Raises `NotFound` before the first one where the
        content is gone.
        """

    async def delete_executions(self, *execution_ids: str) -> None:
        """
        Delete every file of these executions, durably: none is back after a power cut. Nothing
        there is fine. Raises `StoreUnavailable`.
        """
