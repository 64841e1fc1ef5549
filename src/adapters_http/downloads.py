"""
Responses with the content of an artifact, or with one range of the content, that cannot do harm.

A step may write any file: browsers get the file in a sandbox, without sniffing, and as an
attachment unless the file can be previewed. Spec: artifacts; RFC 9110 §14.
"""

import re
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

from attrs import frozen
from starlette.responses import Response, StreamingResponse

from adapters_http.json_text import dump_json
from wfcore.model.execution import Artifact
from wfcore.model.json import Json
from wfcore.wire.common import disposition

Read: TypeAlias = Callable[[int, int], AsyncIterator[bytes]]
"""
A function that returns the bytes [start, end) of the content; it raises `NotFound` before the first
byte.
"""

LARGEST_DISPLAYED = 8 << 20
"""The bytes of the largest file that a browser displays; a browser saves a larger file."""

_ONE_RANGE = re.compile(r"bytes[ \t]*=[ \t]*([0-9]{0,18})-([0-9]{0,18})[ \t]*", re.I)
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(?:; ?[\w-]+=[\w.-]+)?", re.ASCII)
OUTPUT_MEDIA = "application/vnd.wfcore.output+json"
"""The media type of an output, which is any JSON; `application/json` is for our shapes."""

_UNKNOWN = "application/octet-stream"

_SAFETY = {
    "Accept-Ranges": "bytes",
    "Cache-Control": "private, no-store",
    "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@frozen
class Range:
    """The bytes [start, end) of a file; a range is never empty."""

    start: int
    end: int


@frozen
class Unsatisfiable:
    """A range that has no byte of the file; the status is 416."""


def parse_range(header: str | None, size: int) -> Range | Unsatisfiable | None:
    """
    The range of a file of *size* bytes that a Range header requests; None: the whole file.

    A malformed header, another unit and several ranges count as absent.
    """
    match = _ONE_RANGE.fullmatch(header or "")
    if match is None:
        return None
    first, last = match.groups()
    if not first:
        return _suffix(int(last), size) if last else None
    start, end = int(first), int(last) + 1 if last else size
    if last and end <= start:
        return None
    return Range(start, min(end, size)) if start < size else Unsatisfiable()


def _suffix(length: int, size: int) -> Range | Unsatisfiable | None:
    if length == 0:
        return Unsatisfiable()
    return Range(max(size - length, 0), size) if size else None


async def download_response(
    artifact: Artifact,
    range_header: str | None,
    if_range: str | None,
    read: Read,
    *,
    head: bool = False,
) -> Response:
    """
    The response with the content of *artifact*: 200, 206, or 416; with *head* without content.

    Raises the errors that *read* raises before its first chunk, usually `NotFound`.
    """
    etag = f'"{artifact.sha256}"'
    wanted = parse_range(range_header, artifact.size)
    if if_range is not None and if_range.strip() != etag:
        wanted = None
    headers = {**_SAFETY, "ETag": etag}
    if isinstance(wanted, Unsatisfiable):
        return _unsatisfiable(artifact.size, headers)
    part = wanted or Range(0, artifact.size)
    headers |= _described(artifact, part)
    if wanted:
        headers["Content-Range"] = f"bytes {part.start}-{part.end - 1}/{artifact.size}"
    status = 206 if wanted else 200
    if head:
        return Response(None, status, headers)
    return StreamingResponse(await _with_first_chunk(read(part.start, part.end)), status, headers)


def is_displayed(artifact: Artifact) -> bool:
    """
    Whether browsers display *artifact*; if so, the response needs headers that a bucket does not
    send.
    """
    return artifact.previewable and artifact.size <= LARGEST_DISPLAYED


def redirect_to(url: str) -> Response:
    """A redirect to the content at *url*, which no client stores."""
    headers = {"Location": url, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
    return Response(None, 302, headers)


def output_response(key: str, output: Json) -> Response:
    """A step's output as a file: text unchanged, any other value as JSON."""
    is_text = isinstance(output, str)
    content = (
        output.encode("utf-8", "surrogatepass") if isinstance(output, str) else dump_json(output)
    )
    headers = {
        **{name: value for name, value in _SAFETY.items() if name != "Accept-Ranges"},
        "Content-Type": "text/plain; charset=utf-8" if is_text else OUTPUT_MEDIA,
        "Content-Disposition": disposition(f"{key}.txt" if is_text else f"{key}.json"),
    }
    return Response(content, headers=headers)


def _described(artifact: Artifact, part: Range) -> dict[str, str]:
    return {
        "Content-Type": _media_type(artifact.content_type),
        "Content-Length": str(part.end - part.start),
        "Content-Disposition": disposition(artifact.name, inline=artifact.previewable),
    }


def _media_type(given: str) -> str:
    """
    The content type of a step's file if it fits in a header, otherwise the content type of bytes.
    Text without a charset is UTF-8.
    """
    if not _MEDIA_TYPE.fullmatch(given):
        return _UNKNOWN
    bare_text = given.startswith("text/") and ";" not in given
    return f"{given}; charset=utf-8" if bare_text else given


def _unsatisfiable(size: int, headers: dict[str, str]) -> Response:
    headers |= {"Content-Range": f"bytes */{size}", "Content-Type": "application/json"}
    return Response(dump_json({"error": "The range is outside of the file"}), 416, headers)


async def _with_first_chunk(content: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """
    *content*, with its first chunk already fetched, so that a missing file raises before the
    response begins.
    """
    first = await anext(content, b"")

    async def all_of_it() -> AsyncIterator[bytes]:
        yield first
        async for chunk in content:
            yield chunk

    return all_of_it()
