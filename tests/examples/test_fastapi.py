"""The HTTP interface below a path of a FastAPI application, with that application's login."""

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx
import pytest

from tests.support.http_world import serving

from .loading import example


@pytest.fixture
async def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """Where the example's application answers."""
    monkeypatch.setenv("WFCORE_DATA", str(tmp_path / "data"))
    async with serving(example("embed_fastapi").app) as url:
        yield url


@pytest.fixture
async def ann(url: str) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody who is signed in to the outer application and has no key."""
    async with httpx.AsyncClient(base_url=url, timeout=60) as http:
        await http.get("/login", params={"name": "ann"})
        yield http


async def test_who_is_signed_in_outside_runs_a_workflow_inside(ann: httpx.AsyncClient) -> None:
    """Listed, started, waited for, its artifact downloaded: by the outer session alone. AU-10."""
    (workflow,) = (await ann.get("/flows/api/v1/workflows")).json()["items"]
    started = await ann.post(f"/flows/api/v1/workflows/{workflow['id']}/executions", json={})
    assert started.status_code == 202, started.text
    path = f"/flows/api/v1/executions/{started.json()['executionId']}"
    assert (await ann.get(path, params={"wait": 30})).json()["status"] == "COMPLETED"
    (report,) = (await ann.get(f"{path}/artifacts")).json()["artifacts"]
    assert report["downloadUrl"].startswith("/flows/api/executions/")
    async with httpx.AsyncClient() as nobody:
        link = urljoin(str(ann.base_url), report["downloadUrl"])
        assert (await nobody.get(link)).content == b"hello\n"
        assert (await nobody.get(link.partition("?")[0])).status_code == 401
    bare = urlsplit(link).path
    assert (await ann.get(bare)).content == b"hello\n"


async def test_who_is_not_signed_in_stays_outside(url: str) -> None:
    """Without the outer session there are keys, and nothing else. AU-10."""
    async with httpx.AsyncClient(base_url=url) as http:
        assert (await http.get("/flows/api/v1/workflows")).status_code == 401
        assert (await http.get("/flows/healthz")).status_code == 200
        assert (await http.get("/healthz")).status_code == 404


async def test_a_visitor_may_do_what_the_host_says_and_no_more(ann: httpx.AsyncClient) -> None:
    """The scopes are the host's choice: this one lets nobody cancel. AU-4, AU-10."""
    refused = await ann.post("/flows/api/v1/executions/exec_0/cancel")
    assert (refused.status_code, refused.content) == (401, b'{"error":"Unauthorized"}')
