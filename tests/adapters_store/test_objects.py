"""Artifacts in a bucket: the contract, what is in memory, what is left of a failure, no secrets."""

import hashlib
import sys
from asyncio import create_subprocess_exec, to_thread
from asyncio.subprocess import PIPE
from collections.abc import Callable
from io import BytesIO
from urllib.request import urlopen

import pytest

from adapters_store import objects
from adapters_store.objects import PART, ObjectFiles
from tests.support.s3_server import SECRET, Buckets
from wfcore.errors import NotFound, StoreUnavailable
from wfcore.ports.files import ArtifactFiles
from wfcore.testing import FilesContract
from wfcore.testing.contracts.files import content
from wfcore.wire.common import disposition


class TestObjectFiles(FilesContract):
    @pytest.fixture
    def files(self, bucket: str) -> ArtifactFiles:
        return ObjectFiles(bucket)


def uploads(buckets: Buckets, bucket: str) -> bytes:
    """What the server says of uploads in parts that have not ended."""
    return buckets.call("GET", f"/{bucket.split('/')[2]}?uploads")


async def test_what_one_node_stored_another_one_reads(bucket: str) -> None:
    """Two adapters on one prefix see the same; one beside it, and one in it, see only theirs."""
    one, other = ObjectFiles(bucket), ObjectFiles(f"{bucket}/")
    kept = await one.store("exec_1", "art_1", BytesIO(b"a"))
    assert await content(other, kept.storage_key, 0, 1) == b"a"
    beside = ObjectFiles(f"{bucket}-2")
    assert [found async for found in beside.find_all()] == []
    with pytest.raises(NotFound):
        await content(beside, kept.storage_key, 0, 1)


class Endless:
    """Content of *size* bytes that is made as it is read, a little at a time."""

    def __init__(self, size: int, fault: Exception | None = None) -> None:
        self.left, self.fault = size, fault

    def read(self, size: int = -1) -> bytes:
        if not self.left and self.fault:
            raise self.fault
        given = min(self.left, size, 1 << 20)
        self.left -= given
        return bytes(given)


async def test_large_content_goes_in_parts(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than one part, of which a few are in memory; it is whole, and read in small requests."""
    ahead: list[int] = []
    size, source = 3 * PART + 17, Endless(3 * PART + 17)
    part = objects._Counted.part

    def noted(self: "objects._Counted") -> bytes:
        made = part(self)
        ahead.append(len(made))
        return made

    monkeypatch.setattr(objects._Counted, "part", noted)
    kept = await ObjectFiles(bucket).store("exec_1", "art_1", source)  # type: ignore[arg-type]
    assert max(ahead) == PART
    assert (kept.size, kept.sha256) == (size, hashlib.sha256(bytes(size)).hexdigest())
    chunks = [len(one) async for one in ObjectFiles(bucket).read(kept.storage_key, 5, size)]
    assert (sum(chunks), max(chunks)) == (size - 5, objects.CHUNK)


@pytest.mark.parametrize("size", [10, PART, 3 * PART])
async def test_content_that_breaks_off_leaves_nothing(
    buckets: Buckets, bucket: str, size: int
) -> None:
    """No object and no hidden parts; the error is of the store, and may be tried again."""
    files = ObjectFiles(bucket)
    source = Endless(size, OSError(5, "Input/output error"))
    with pytest.raises(StoreUnavailable):
        await files.store("exec_1", "art_1", source)  # type: ignore[arg-type]
    assert [found async for found in files.find_all()] == []
    assert b"<UploadId>" not in uploads(buckets, bucket)


DIES = f"""
import asyncio, sys, time
from adapters_store.objects import ObjectFiles

class Slow:
    given = 0
    def read(self, size):
        if self.given == 3 * {PART}:
            print("begun", flush=True)
            time.sleep(600)
        self.given += size
        return bytes(size)

asyncio.run(ObjectFiles(sys.argv[1]).store("exec_1", "art_1", Slow()))
"""


async def test_a_process_that_dies_in_the_middle_leaves_no_object(bucket: str) -> None:
    """What was not stored whole is nowhere to be read or listed; the same can be stored anew."""
    process = await create_subprocess_exec(sys.executable, "-c", DIES, bucket, stdout=PIPE)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"begun\n"
    process.kill()
    await process.wait()
    files = ObjectFiles(bucket)
    assert [found async for found in files.find_all()] == []
    with pytest.raises(NotFound):
        await content(files, "exec_1/art_1", 0, 1)
    kept = await files.store("exec_1", "art_1", BytesIO(b"whole"))
    assert await content(files, kept.storage_key, 0, kept.size) == b"whole"


OPERATIONS: list[Callable[[ObjectFiles], object]] = [
    lambda files: files.store("exec_1", "art_1", BytesIO(b"a")),
    lambda files: content(files, "exec_1/art_1", 0, 1),
    lambda files: content(files, "exec_1/art_1", 0, 0),
    lambda files: files.delete_executions("exec_1"),
    lambda files: anext(files.find_all()),
]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("wrong", ["nobody listens", "no such bucket"])
async def test_a_bucket_that_cannot_be_used_is_unavailable(
    bucket: str, operation: Callable[[ObjectFiles], object], wrong: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Each operation says so with our own error, which tells the secret to nobody."""
    monkeypatch.setattr(objects, "_RETRY", {"max_retries": 0})
    if wrong == "nobody listens":
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    files = ObjectFiles("s3://not-there-at-all/x" if wrong == "no such bucket" else bucket)
    with pytest.raises((StoreUnavailable, NotFound)) as refused:
        await operation(files)  # type: ignore[misc]
    if wrong == "no such bucket" and operation is OPERATIONS[2]:
        return  # the answer to HEAD has no body that could tell
    assert isinstance(refused.value, StoreUnavailable)
    shown = f"{refused.value.detail} {refused.value!r} {refused.value.__cause__!r}"
    assert SECRET not in shown
    assert "\n" not in refused.value.detail


async def test_a_direct_url_is_harmless_and_only_for_reading(bucket: str) -> None:
    """It opens one content, as an attachment of no type, for a minute; only where it is wanted."""
    kept = await ObjectFiles(bucket).store("exec_1", "art_1", BytesIO(b"<script>"))
    assert await ObjectFiles(bucket).direct_url(kept.storage_key) is None
    url = await ObjectFiles(bucket, direct=True).direct_url(kept.storage_key)
    assert url is not None
    assert "X-Amz-Expires=60" in url
    assert SECRET not in url
    with await to_thread(urlopen, url, timeout=60) as answer:
        assert answer.read() == b"<script>"
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"] == "attachment"


@pytest.mark.parametrize("size", [9, PART])
@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("out/report.csv", "report.csv"),
        ('"; filename="a.html', '"; filename="a.html'),
        ("a\r\nContent-Type: text/html", "a\r\nContent-Type: text/html"),
        ("Überweisung €.csv", "Überweisung €.csv"),
        ("x" * 2_000, None),
    ],
)
async def test_what_is_downloaded_there_is_called_by_its_name(
    bucket: str, size: int, name: str, label: str | None
) -> None:
    """Any name, as one label: still an attachment of no type. One that no header holds is left."""
    files = ObjectFiles(bucket, direct=True)
    kept = await files.store("exec_1", "art_1", BytesIO(bytes(size)), name)
    url = await files.direct_url(kept.storage_key)
    assert url is not None
    with await to_thread(urlopen, url, timeout=60) as answer:
        assert len(answer.read()) == size
        assert answer.headers.get_all("content-type") == ["application/octet-stream"]
        told = answer.headers["content-disposition"]
    assert told == (disposition(label) if label else "attachment")


def test_an_environment_that_cannot_be_used_is_refused(bucket: str) -> None:
    """A URL of a kind that is no bucket is a `ValueError`, at once."""
    with pytest.raises(ValueError, match="ftp"):
        ObjectFiles("ftp://bucket/x")
