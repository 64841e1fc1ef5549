"""Pages of other origins may call the API where the operator names them. No cookies then."""

import pytest

from adapters_http.app import HttpConfig
from tests.support.http_world import World

APP = "https://app.example.org"
ASKING = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type,idempotency-key",
}


@pytest.fixture
def config() -> HttpConfig:
    return HttpConfig(cors_origins=(APP,))


async def test_a_named_origin_may_ask(world: World):
    """Browsers ask first: with which methods and headers."""
    path = "/api/v1/workflows/wf_1/executions"
    answer = await world.http.options(path, headers={**ASKING, "Origin": APP})
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == APP
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert "access-control-allow-credentials" not in answer.headers


async def test_every_answer_can_be_read_errors_too(world: World):
    """With what a client needs to go on: where, when again, and the request's id."""
    for path, status in (("/api/v1/workflows", 200), ("/api/v1/nope", 404)):
        answer = await world.get(path, headers={**world.bearer, "Origin": APP})
        assert answer.status_code == status
        assert answer.headers["access-control-allow-origin"] == APP
        assert {"Location", "Retry-After", "X-Request-Id"} <= set(
            answer.headers["access-control-expose-headers"].split(", ")
        )


async def test_other_origins_may_not(world: World):
    """Neither ask nor read; the same with an origin that only looks alike."""
    for origin in ("https://evil.example.org", f"{APP}.evil.example", "null"):
        asked = await world.http.options("/api/v1/workflows", headers={**ASKING, "Origin": origin})
        assert asked.status_code == 400
        read = await world.get("/api/v1/workflows", headers={"Origin": origin})
        assert "access-control-allow-origin" not in {*asked.headers, *read.headers}
