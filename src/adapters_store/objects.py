"""
The content of artifacts in a bucket, `<prefix>/<execution>/<artifact>`: S3 and services with its
protocol, Google and Azure, through obstore. Decision 218.

An object exists only as a whole, so an upload that was broken off leaves no visible object. A large
object is uploaded in parts. The parts of a failed upload are removed; the parts of a killed process
are invisible, and stay until a lifecycle rule of the bucket removes them.

Credentials come from the environment, as the provider's own tools read them, or from the machine.
This module never shows credentials: errors name the object, with the message of the bucket.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any, BinaryIO

import obstore
from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store, from_url

from wfcore.errors import NotFound, StoreUnavailable
from wfcore.ports.files import FoundFile, StoredFile
from wfcore.time import EpochMs
from wfcore.wire.common import disposition

PART = 5 << 20
"""The bytes of one part, the least that S3 accepts; an object has at most 10,000 parts."""
PARTS_AT_ONCE = 2
CHUNK = 1 << 20
"""The bytes of one request for content: no connection waits for a slow reader."""
LISTED = 1_000
DIRECT_FOR = timedelta(minutes=1)

_CLIENT: Any = {"connect_timeout": "5s", "timeout": "60s", "allow_http": True}
"""
The settings of the HTTP client. Only an endpoint that is written `http://…` is used without TLS; a
secret is never sent either way.
"""
_RETRY: Any = {"max_retries": 4, "retry_timeout": timedelta(seconds=20)}
_HARMLESS: Any = {
    "Content-Type": "application/octet-stream",
    "Content-Disposition": "attachment",
    "Cache-Control": "private, no-store",
}
"""
The headers of an object that a browser reads from the bucket: the file of a step is not trusted.
"""
LONGEST_LABEL = 1_500
"""The longest name in a Content-Disposition; S3 takes 2 KiB of headers."""
_FAULTS = (BaseError, OSError, ValueError)
"""The errors that obstore raises; for some causes obstore raises errors of Python."""


class ObjectFiles:
    """
    Implements `wfcore.ports.files.ArtifactFiles` below *url*, such as `s3://bucket/prefix`.
    *direct*: `direct_url` gives URLs. The constructor contacts no server. Raises `ValueError` for a
    URL or an environment that obstore cannot use.
    """

    def __init__(self, url: str, direct: bool = False) -> None:
        self._direct = direct
        try:
            self._bucket = from_url(url, client_options=_CLIENT, retry_config=_RETRY)
        except _FAULTS as error:
            raise ValueError(_first_line(error)) from None

    async def store(
        self, execution_id: str, artifact_id: str, content: BinaryIO, name: str = ""
    ) -> StoredFile:
        """Upload *content*, in a thread that ends by itself. Raises `StoreUnavailable`."""
        key = f"{execution_id}/{artifact_id}"
        return await asyncio.to_thread(self._store, key, content, _attributes(name))

    async def copy(self, storage_key: str, execution_id: str, artifact_id: str) -> str:
        """
        Let the bucket copy an object; returns the new storage key. Raises `NotFound`,
        `StoreUnavailable`.
        """
        key = f"{execution_id}/{artifact_id}"
        try:
            await obstore.copy_async(self._bucket, storage_key, key)
        except _FAULTS as error:
            raise _fault(error) from error
        return key

    def local_path(self, storage_key: str) -> None:
        """Returns None: an object is no file of this machine."""

    async def read(self, storage_key: str, start: int, end: int) -> AsyncIterator[bytes]:
        """The bytes [*start*, *end*) in chunks of 1 MiB. Raises `NotFound`, `StoreUnavailable`."""
        try:
            if start >= end:
                await obstore.head_async(self._bucket, storage_key)
            while start < end:
                upto = min(start + CHUNK, end)
                chunk = await obstore.get_range_async(
                    self._bucket, storage_key, start=start, end=upto
                )
                yield bytes(chunk)
                if start + len(chunk) < upto:
                    return
                start = upto
        except _FAULTS as error:
            raise _fault(error) from error

    async def delete_executions(self, *execution_ids: str) -> None:
        """Delete every object of these executions. Raises `StoreUnavailable`."""
        try:
            found = await asyncio.gather(*map(self._keys, execution_ids))
            if keys := [key for some in found for key in some]:
                await obstore.delete_async(self._bucket, keys)
        except _FAULTS as error:
            raise _unavailable(error) from error

    async def find_all(self) -> AsyncIterator[FoundFile]:
        """Every object, in pages of the bucket. Raises `StoreUnavailable`."""
        try:
            async for page in obstore.list(self._bucket, chunk_size=LISTED):
                for one in page:
                    at = EpochMs(int(one["last_modified"].timestamp() * 1_000))
                    yield FoundFile(one["path"], at)
        except _FAULTS as error:
            raise _unavailable(error) from error

    async def direct_url(self, storage_key: str) -> str | None:
        """A presigned URL for GET, if direct URLs are wanted. Raises `StoreUnavailable`."""
        if not self._direct or not isinstance(self._bucket, S3Store | GCSStore | AzureStore):
            return None
        try:
            return await obstore.sign_async(self._bucket, "GET", storage_key, DIRECT_FOR)
        except _FAULTS as error:
            raise _unavailable(error) from error

    async def _keys(self, execution_id: str) -> list[str]:
        listed = obstore.list(self._bucket, f"{execution_id}/", chunk_size=LISTED)
        return [one["path"] async for page in listed for one in page]

    def _store(self, key: str, content: BinaryIO, attributes: Any) -> StoredFile:
        """
        Store *content* in one request if it is smaller than a part, otherwise in parts, so that
        large content is never in memory as a whole.
        """
        counted = _Counted(content)
        try:
            first = counted.part()
            if len(first) < PART:
                self._put(key, first, attributes, use_multipart=False)
            else:
                self._put(key, counted.parts(first), attributes, use_multipart=True)
        except _FAULTS as error:
            raise _unavailable(error) from error
        return StoredFile(key, counted.size, counted.sha256)

    def _put(
        self, key: str, content: bytes | Iterator[bytes], attributes: Any, *, use_multipart: bool
    ) -> None:
        obstore.put(
            self._bucket,
            key,
            content,
            attributes=attributes,
            use_multipart=use_multipart,
            chunk_size=PART,
            max_concurrency=PARTS_AT_ONCE,
        )


def _attributes(name: str) -> Any:
    """The headers that make an object harmless; they include *name* if it fits in a header."""
    label = disposition(name) if name else ""
    named = {"Content-Disposition": label} if 0 < len(label) <= LONGEST_LABEL else {}
    return {**_HARMLESS, **named}


class _Counted:
    """A reader of content that counts its size and computes its digest on the way."""

    def __init__(self, content: BinaryIO) -> None:
        self.size = 0
        self._content = content
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def part(self) -> bytes:
        """The next part, which is shorter only at the end of the content; b"" after the end."""
        pieces, missing = [], PART
        while missing and (piece := self._content.read(missing)):
            pieces.append(piece)
            missing -= len(piece)
        part = b"".join(pieces)
        self.size += len(part)
        self._digest.update(part)
        return part

    def parts(self, part: bytes) -> Iterator[bytes]:
        while part:
            yield part
            part = self.part()


def _fault(error: Exception) -> NotFound | StoreUnavailable:
    """
    The error to raise: `NotFound` for a missing object, otherwise `StoreUnavailable`. A missing
    bucket is a wrong setting, not a wrong request.
    """
    if isinstance(error, FileNotFoundError) and "NoSuchBucket" not in str(error):
        return NotFound("artifact")
    return _unavailable(error)


def _unavailable(error: Exception) -> StoreUnavailable:
    return StoreUnavailable(detail=f"artifact: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0][:300]
