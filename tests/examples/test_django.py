"""Django views on the core, served on a socket."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.support.http_world import serving
from wfcore.rules.webhooks.scheme import sign

from .loading import example

BODY = b'{"number": "A-7", "lines": [1, 2]}'


@pytest.fixture
async def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx.AsyncClient]:
    monkeypatch.setenv("WFCORE_DATA", str(tmp_path / "data"))
    async with (
        serving(example("embed_django").application) as url,
        httpx.AsyncClient(base_url=url, timeout=60) as http,
    ):
        yield http


async def test_a_view_uses_the_rules_alone(site: httpx.AsyncClient) -> None:
    """Signature and mapping of a webhook that the site itself receives. SG-1, VM-2."""
    signed = {"X-Webhook-Signature": f"sha256={sign('s3cret', BODY)}"}
    answer = await site.post("/hook", content=BODY, headers=signed)
    assert answer.json() == {"variables": {"order": "A-7"}}
    assert (await site.post("/hook", content=BODY + b" ", headers=signed)).status_code == 401


async def test_views_start_and_show_an_execution(site: httpx.AsyncClient) -> None:
    """Accepted in one view, done by the worker of the same process, shown in another."""
    started = await site.post("/orders/A-7/refund")
    assert started.status_code == 202, started.text
    shown = (await site.get(f"/executions/{started.json()['execution']}")).json()
    assert (shown["status"], shown["stepResults"]["refund"]["output"]) == (
        "COMPLETED",
        "refunded A-7",
    )
    assert (await site.get("/executions/exec_0")).status_code == 404
