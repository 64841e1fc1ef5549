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
    """
    Artifact contents by storage key. A content is stored before the record that refers to it, and
    is durable when `store` returns.
    """

    async def store(self, execution_id: str, artifact_id: str, content: BinaryIO) -> StoredFile:
        """Copy *content* from its position to its end. Raises `StoreUnavailable`."""

    def read(self, storage_key: str, start: int, end: int) -> AsyncIterator[bytes]:
        """
        The bytes [*start*, *end*) in chunks. Raises `NotFound` before the first chunk if the
        content no longer exists.
        """

    async def delete_executions(self, *execution_ids: str) -> None:
        """
        Delete all files of these executions durably: none reappears after a power cut. Executions
        without files are ignored. Raises `StoreUnavailable`.
        """
