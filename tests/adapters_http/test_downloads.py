"""Ranges as RFC 9110 has them, and files of strangers that can do no harm."""

import re
from urllib.parse import unquote

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.routing import Route

from adapters_http.downloads import (
    Range,
    Unsatisfiable,
    download_response,
    output_response,
    parse_range,
)
from wfcore.errors import NotFound
from wfcore.testing import builders as make
from wfcore.wire.common import disposition

CONTENT = bytes(range(256)) * 10
SIZE = len(CONTENT)
REPORT = make.artifact(
    name="report.csv",
    size=SIZE,
    sha256="ab" * 32,
    content_type="text/csv",
    previewable=False,
)


async def chunks(start: int, end: int):
    for at in range(start, end, 100):
        yield CONTENT[at : min(at + 100, end)]


async def gone(start: int, end: int):
    raise NotFound("Artifact")
    yield b""


async def ask(artifact=REPORT, method="GET", read=chunks, **headers):
    async def answer(request):
        return await download_response(
            artifact,
            request.headers.get("range"),
            request.headers.get("if-range"),
            read,
            head=request.method == "HEAD",
        )

    named = {name.replace("_", "-"): value for name, value in headers.items()}
    app = Starlette(routes=[Route("/", answer)])
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        return await client.request(method, "/", headers=named)


@pytest.mark.parametrize(
    ("header", "size", "asked"),
    [
        (None, 10, None),
        ("bytes=0-", 10, Range(0, 10)),
        ("bytes=0-0", 10, Range(0, 1)),
        ("bytes=2-4", 10, Range(2, 5)),
        ("Bytes = 2-4 ", 10, Range(2, 5)),
        ("bytes=2-99", 10, Range(2, 10)),
        ("bytes=9-", 10, Range(9, 10)),
        ("bytes=10-", 10, Unsatisfiable()),
        ("bytes=10-20", 10, Unsatisfiable()),
        ("bytes=-3", 10, Range(7, 10)),
        ("bytes=-99", 10, Range(0, 10)),
        ("bytes=-0", 10, Unsatisfiable()),
        ("bytes=0-", 0, Unsatisfiable()),
        ("bytes=-5", 0, None),
        ("bytes=5-4", 10, None),
        ("bytes=-", 10, None),
        ("bytes=", 10, None),
        ("bytes=a-b", 10, None),
        ("bytes=0-1,3-4", 10, None),
        ("lines=0-1", 10, None),
        ("bytes=0x1-2", 10, None),
        ("bytes=²-3", 10, None),
        ("bytes=" + "9" * 5_000 + "-", 10, None),
        ("bytes=999999999999999999-", 10, Unsatisfiable()),
    ],
)
def test_a_range_is_what_the_rfc_says(header, size, asked):
    """Open, closed and suffix ranges; what is malformed or of several parts is ignored."""
    assert parse_range(header, size) == asked


@given(
    header=st.text("bytes=-, 0123456789", max_size=30)
    | st.from_regex(r"\Abytes=[0-9]{0,3}-[0-9]{0,3}\Z"),
    size=st.integers(0, 500),
)
def test_a_range_lies_inside_of_the_file(header, size):
    """Whatever is asked for, a range is never empty and never outside."""
    asked = parse_range(header, size)
    if isinstance(asked, Range):
        assert 0 <= asked.start < asked.end <= size


async def test_the_whole_file_is_sent_as_a_harmless_attachment():
    """200 with its length, type, tag and name; sandboxed, not sniffed, not stored."""
    answer = await ask()
    assert (answer.status_code, answer.content) == (200, CONTENT)
    headers = answer.headers
    assert headers["content-length"] == str(SIZE)
    assert headers["content-type"] == "text/csv; charset=utf-8"
    assert headers["accept-ranges"] == "bytes"
    assert headers["etag"] == '"' + "ab" * 32 + '"'
    assert headers["content-disposition"] == 'attachment; filename="report.csv"'
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "private, no-store"
    assert headers["content-security-policy"].startswith("sandbox; default-src 'none'")


@given(first=st.integers(0, SIZE - 1), length=st.integers(1, SIZE))
async def test_a_range_is_exactly_that_part(first, length):
    """206 with the asked bytes and where they lie in the whole."""
    answer = await ask(range=f"bytes={first}-{first + length - 1}")
    part = CONTENT[first : first + length]
    assert (answer.status_code, answer.content) == (206, part)
    assert answer.headers["content-range"] == f"bytes {first}-{first + len(part) - 1}/{SIZE}"
    assert answer.headers["content-length"] == str(len(part))


async def test_a_range_outside_is_416_with_the_size():
    """A range beyond the end is an error that tells the size, in the usual shape."""
    answer = await ask(range=f"bytes={SIZE}-")
    assert answer.status_code == 416
    assert answer.headers["content-range"] == f"bytes */{SIZE}"
    assert list(answer.json()) == ["error"]


@pytest.mark.parametrize(
    ("tag", "status"),
    [
        ('"' + "ab" * 32 + '"', 206),
        ('W/"' + "ab" * 32 + '"', 200),
        ('"other"', 200),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 200),
        ("", 200),
    ],
)
async def test_a_range_of_another_version_is_the_whole_file(tag, status):
    """If-Range: only our own strong tag keeps the range, and also its 416."""
    assert (await ask(range="bytes=0-3", if_range=tag)).status_code == status
    beyond = (await ask(range=f"bytes={SIZE}-", if_range=tag)).status_code
    assert beyond == (416 if status == 206 else 200)


@pytest.mark.parametrize("headers", [{}, {"range": "bytes=2-5"}])
async def test_head_has_the_headers_and_no_content(headers):
    """HEAD answers like GET, and reads nothing."""
    got, head = await ask(**headers), await ask(method="HEAD", read=gone, **headers)
    assert head.content == b""
    assert head.status_code == got.status_code
    assert dict(head.headers) == dict(got.headers)


async def test_an_empty_file_can_be_fetched():
    """A file without content is 200 with length 0."""
    empty = make.artifact(size=0)
    for asked in ({}, {"range": "bytes=-5"}):
        answer = await ask(empty, **asked)
        assert (answer.status_code, answer.content) == (200, b"")
        assert answer.headers["content-length"] == "0"


async def test_lost_content_is_known_before_the_answer():
    """Where the content is gone, the error comes instead of half an answer."""
    with pytest.raises(NotFound):
        await download_response(REPORT, None, None, gone)


async def test_a_previewable_file_is_shown_inline():
    """What can be previewed is not forced to be saved; the sandbox stays."""
    image = make.artifact(name="a.png", content_type="image/png", previewable=True, size=SIZE)
    answer = await ask(image)
    assert answer.headers["content-disposition"] == 'inline; filename="a.png"'
    assert answer.headers["content-type"] == "image/png"
    assert "sandbox" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("kind", ["", "text/html\r\nX-Evil: 1", "nonsense", "text/ü", "a/b/c"])
async def test_a_type_that_is_none_is_not_sent(kind):
    """A media type that is malformed becomes application/octet-stream."""
    odd = make.artifact(content_type=kind, size=SIZE)
    assert (await ask(odd)).headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize(
    ("output", "content", "kind", "name"),
    [
        ("a\ud800é", b"a\xed\xa0\x80\xc3\xa9", "text/plain; charset=utf-8", "step.txt"),
        ({"a": 1}, b'{"a":1}', "application/vnd.wfcore.output+json", "step.json"),
        (None, b"null", "application/vnd.wfcore.output+json", "step.json"),
    ],
)
def test_an_output_is_sent_as_a_harmless_attachment(output, content, kind, name):
    """Text as it is, even where it is no Unicode; all else as JSON. No ranges are promised."""
    answer = output_response("step", output)
    assert (answer.status_code, answer.body) == (200, content)
    assert answer.headers["content-type"] == kind
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "accept-ranges" not in answer.headers


@given(name=st.text())
def test_any_name_is_a_safe_label(name):
    """Whatever a file is called, the header is plain ASCII and gives the full last part."""
    header = disposition(name)
    match = re.fullmatch(
        r"attachment; filename=\"([A-Za-z0-9 ._()+-]+)\"(?:; filename\*=UTF-8''([!-~]+))?", header
    )
    assert match
    shown = unquote(match[2]) if match[2] else match[1]
    last = re.split(r"[/\\]", name)[-1] or "file"
    assert shown == last.encode("utf-8", "replace").decode()
