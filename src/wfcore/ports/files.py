"""The port that stores the content of artifacts."""

from collections.abc import AsyncIterator
from typing import BinaryIO, Protocol

from attrs import frozen

from wfcore.time import EpochMs


@frozen
class StoredFile:
    """A file in the store of artifacts. `size` in bytes; `sha256` in hexadecimal."""

    storage_key: str
    size: int
    sha256: str


@frozen
class FoundFile:
    """
    A file in the medium, with or without a record. `stored_at`: the time in the medium's clock.
    """

    storage_key: str
    stored_at: EpochMs

    @property
    def execution_id(self) -> str:
        """The execution of the file; for a foreign file, a name that no execution has."""
        return self.storage_key.partition("/")[0]


class ArtifactFiles(Protocol):
    """
    Artifact contents by storage key. The content of an artifact is stored before the record that
    refers to the content, and is durable when `store` returns.
    """

    async def store(
        self, execution_id: str, artifact_id: str, content: BinaryIO, name: str = ""
    ) -> StoredFile:
        """
        Copy *content* from its position to its end. *name*: the file name of the download behind
        `direct_url`; any text without secrets. Raises `StoreUnavailable`.
        """

    async def copy(self, storage_key: str, execution_id: str, artifact_id: str) -> str:
        """
        The storage key of a copy of the content, as a file of the execution *execution_id*. The
        copy is kept as long as that execution and is durable on return. Raises `NotFound`,
        `StoreUnavailable`.
        """

    def local_path(self, storage_key: str) -> str | None:
        """
        The path of the content as a file of this machine that is never written to, whether the
        content still exists or not; None if only `read` gives the content. Raises `NotFound` for a
        key of another form.
        """

    def read(self, storage_key: str, start: int, end: int) -> AsyncIterator[bytes]:
        """
        The bytes [*start*, *end*) in chunks. Raises `NotFound` before the first chunk if the
        content no longer exists.
        """

    async def delete_executions(self, *execution_ids: str) -> None:
        """
        Delete all files of these executions durably: no file reappears after a power cut.
        Executions without files are ignored. Raises `StoreUnavailable`.
        """

    def find_all(self) -> AsyncIterator[FoundFile]:
        """All complete files, in no order. Raises `StoreUnavailable`."""

    async def direct_url(self, storage_key: str) -> str | None:
        """
        A URL that opens the content for a minute without this service, as an attachment of no
        particular type; None if only `read` gives the content. Raises `StoreUnavailable`.
        """
