"""What an error looks like, wherever it comes from."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from attrs import evolve
from starlette.applications import Starlette
from starlette.routing import Mount

from adapters_http.app import HttpConfig, create_app
from adapters_http.config import ServingStage
from adapters_http.errors import STATUS, response_to
from tests.support.http_world import World, a_world, services_over, serving
from wfcore import errors
from wfcore.rules.auth.api_key import compose
from wfcore.testing.fakes import ManualClock
from wfcore.usecases.webhooks.admitting import REFUSED

GOOD_FORM = compose("0" * 16, "a" * 36)


async def test_unknown_paths_and_methods_are_errors_like_all_others(world: World):
    """404 and 405 have the error shape; 405 says what is allowed. ER-1."""
    for path in ("/", "/nope", "/api/v1/workflows/", "/api/v1/nope", "/api/v1/workflows/%00"):
        answer = await world.get(path)
        assert (answer.status_code, answer.json()) == (404, {"error": "Not found"})
    answer = await world.http.patch("/api/v1/workflows")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"
    assert answer.json() == {"error": "Method not allowed; allowed: GET, HEAD"}
    assert (await world.http.options("/api/webhooks")).headers["allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize("slash", ["%2F", "%2f", "%252F"])
async def test_an_encoded_slash_is_no_slash(world: World, slash: str):
    """It belongs to its segment: no other row is reached than by the path as it is written."""
    assert (await world.get("/api/v1/executions")).status_code == 200
    assert (await world.get(f"/api/v1{slash}executions")).status_code == 404
    id = await world.finished()
    assert (await world.get(f"/api/v1/executions/{id}/result")).status_code == 200
    answer = await world.get(f"/api/v1/executions/{id}{slash}result")
    assert (answer.status_code, answer.json()) == (404, {"error": "Execution not found"})
    approval = await world.http.get(f"/api/webhook-trigger/approval{slash}x/approve")
    assert approval.status_code == 404


async def test_every_answer_has_a_request_id(world: World):
    """A sane id of the caller's is kept, any other replaced, and no two are the same."""
    given = await world.get("/nope", headers={"X-Request-Id": "abc-1.2:3"})
    assert given.headers["x-request-id"] == "abc-1.2:3"
    made = [
        (await world.http.get("/healthz", headers={"X-Request-Id": bad})).headers["x-request-id"]
        for bad in ("", "a b", "x" * 129, "a\tb", "<script>")
    ]
    assert len(set(made)) == 5
    assert all(one.startswith("req_") for one in made)


async def test_answers_are_neither_kept_nor_sniffed(world: World):
    """Every answer says no-store and nosniff, errors too."""
    for path in ("/api/v1/workflows", "/nope", "/healthz", "/metrics"):
        answer = await world.get(path)
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"


async def test_a_head_is_a_get_without_its_body(world: World):
    """HEAD has the status and the headers of GET."""
    get = await world.get("/api/v1/workflows")
    head = await world.http.head("/api/v1/workflows", headers=world.bearer)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == get.headers["content-length"]


@pytest.mark.parametrize(
    "query",
    ["page=0", "page=-1", "page=x", "page=1.5", "size=0", "size=", "page=%B2", "page=٣"],
)  # fmt: skip
async def test_pages_are_positive_integers(world: World, query: str):
    """Anything else for page or size is 400. PG-1."""
    for path in ("workflows", "executions", "approvals"):
        answer = await world.get(f"/api/v1/{path}?{query}")
        assert answer.status_code == 400
        assert answer.json()["error"].endswith("must be a positive integer")


async def test_sizes_are_cut_and_echoed(world: World):
    """A size over the maximum is cut to it. PG-2, LM-4, LM-5."""
    for path, default in (("workflows", 50), ("executions", 50), ("approvals", 20)):
        assert (await world.get(f"/api/v1/{path}")).json()["size"] == default
        answer = (await world.get(f"/api/v1/{path}?size=10000&page=3")).json()
        assert (answer["size"], answer["page"], answer["total"]) == (200, 3, 0)


async def test_a_flood_of_parameters_is_refused(world: World):
    """Queries with over a hundred parameters are 400."""
    query = "&".join(f"a{number}=1" for number in range(200))
    assert (await world.get(f"/api/v1/workflows?{query}")).status_code == 400


def test_an_error_has_the_status_of_its_kind():
    """A subtype has its parent's status, unless the row says otherwise. ER-2."""
    decided = errors.AlreadyDecided("decided", "appr_1")
    assert response_to(decided, {}).status == 409
    assert response_to(decided, {errors.AlreadyDecided: 404}).status == 404
    assert response_to(errors.Conflict("other"), {errors.AlreadyDecided: 404}).status == 409
    assert response_to(errors.LeaseLost("exec_1"), {}) is None
    assert response_to(RuntimeError("boom"), {}) is None
    assert all(400 <= status < 600 for status in STATUS.values())


class Broken:
    """A store whose every look fails in the same way."""

    def __init__(self, store, error: Exception) -> None:
        self._store, self.error = store, error

    def __getattr__(self, name: str):
        return getattr(self._store, name)

    def view(self):
        raise self.error

    unit = view

    async def ping(self) -> None:
        raise self.error


async def broken(folder: Path, error: Exception, path: str) -> httpx.Response:
    async with services_over(folder, ManualClock()) as services:
        failing = evolve(services, store=Broken(services.store, error))
        async with serving(create_app(failing)) as url, httpx.AsyncClient(base_url=url) as http:
            key = {"Authorization": "Bearer " + GOOD_FORM}
            return await http.get(path, headers=key)


async def test_a_store_that_is_away_is_503(tmp_path: Path):
    """Not ready, and nothing about why; the client is told to come back. ER-2."""
    for path in ("/api/v1/workflows", "/readyz"):
        answer = await broken(tmp_path, errors.StoreUnavailable("disk I/O at /x"), path)
        assert answer.status_code == 503
        assert answer.json() == {"error": "The store is unavailable; retry later"}
        assert int(answer.headers["retry-after"]) >= 1
    assert (await broken(tmp_path, errors.StoreUnavailable(), "/healthz")).status_code == 200


async def test_a_page_of_a_store_that_is_away_says_when_to_try_again(tmp_path: Path):
    """Whoever reads a page learns that nothing was changed, and what programs are told. B7."""
    console = HttpConfig(console=True)
    async with services_over(tmp_path, ManualClock()) as services:
        away = Broken(services.store, errors.StoreUnavailable("disk I/O at /x"))
        app = create_app(evolve(services, store=away), console)
        transport = httpx.ASGITransport(app)
        cookie = {"Cookie": f"wfcore_session={'s' * 43}", "Accept": "text/html"}
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
            page = await http.get("/inbox", headers=cookie)
    assert (page.status_code, page.headers["retry-after"]) == (503, "2")
    assert "Nothing was changed. Try again in 2 s." in page.text
    assert "disk" not in page.text


class Waiting(Broken):
    """A store whose every look waits, until it is given up."""

    def __init__(self, store) -> None:
        super().__init__(store, errors.StoreUnavailable())
        self.reached = asyncio.Event()

    @asynccontextmanager
    async def view(self):
        self.reached.set()
        await asyncio.Event().wait()
        yield


@pytest.mark.parametrize("stage", [ServingStage.DRAINING, ServingStage.ENDING])
async def test_who_waits_while_the_server_ends_is_answered(tmp_path: Path, stage: ServingStage):
    """A request that is given up is told why, and to come back; before that it is just ended."""
    async with services_over(tmp_path, ManualClock()) as services:
        store = Waiting(services.store)
        app = create_app(evolve(services, store=store), HttpConfig(stage=lambda: stage))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
            key = {"Authorization": "Bearer " + GOOD_FORM}
            asking = asyncio.create_task(http.get("/api/v1/workflows", headers=key))
            await store.reached.wait()
            asking.cancel()
            if stage is ServingStage.ENDING:
                answer = await asking
                assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
                assert answer.json() == {"error": "The server is stopping"}
            else:
                with pytest.raises(asyncio.CancelledError):
                    await asking


async def test_a_defect_is_500_and_says_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """The caller learns only the request id; the log has type and place, not the message. SC-4."""
    answer = await broken(tmp_path, RuntimeError("secret-in-message"), "/api/v1/workflows")
    assert (answer.status_code, answer.json()) == (500, {"error": "Internal error"})
    (line,) = [vars(one) for one in caplog.records if one.name == "wfcore.http"]
    assert line["request_id"] == answer.headers["x-request-id"]
    assert (line["msg"], line["error"]) == ("request.failed", "RuntimeError")
    assert line["route"] == "GET /api/v1/workflows"
    assert line["at"][-1].endswith(" view")
    assert "secret-in-message" not in str(line)
    assert GOOD_FORM not in str(line)


async def test_a_defect_is_a_page_where_people_look(tmp_path: Path):
    """With its status and no more than that. SC-4."""
    path = "/api/webhook-trigger/approval/appr_0/approve"
    answer = await broken(tmp_path, RuntimeError("secret-in-message"), path)
    assert (answer.status_code, "Internal error" in answer.text) == (500, True)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "secret-in-message" not in answer.text


async def test_middleware_of_the_host_is_around_everything(tmp_path: Path):
    """In the order in which Starlette has it: what was added last comes first."""

    def noting(app: Any, name: str) -> Any:
        async def noted(scope: Any, receive: Any, send: Any) -> None:
            seen.append(name)
            await app(scope, receive, send)

        return noted

    seen: list[str] = []
    async with services_over(tmp_path, ManualClock()) as services:
        app = create_app(services)
        app.add_middleware(noting, name="inner")
        app.add_middleware(noting, name="outer")
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
            assert (await http.get("/healthz")).status_code == 200
    assert seen == ["outer", "inner"]


async def test_the_application_can_be_mounted(tmp_path: Path):
    """Below a path of another application everything works, URLs included."""
    async with services_over(tmp_path, ManualClock()) as services:
        outer = Starlette(routes=[Mount("/flows", app=create_app(services))])
        async with serving(outer) as url, httpx.AsyncClient(base_url=url) as http:
            assert (await http.get("/flows/healthz")).json()["status"] == "ok"
            assert (await http.get("/healthz")).status_code == 404
            assert (await http.get("/flows/nope")).json() == {"error": "Not found"}
            assert (await http.get("/flows/api/v1/workflows")).status_code == 401


async def test_metrics_count_by_route_and_not_by_path(tmp_path: Path):
    """Prometheus text with the gauges of the composition; ids never become labels."""

    async def gauges() -> dict[str, float]:
        return {"wfcore_places": 8.0}

    config = HttpConfig(gauges=gauges)
    async with a_world(tmp_path, config) as world:
        await world.get("/api/v1/executions/exec_secret")
        await world.get("/nope/exec_secret")
        text = (await world.http.get("/metrics")).text
    assert 'route="/api/v1/executions/{id}",status="404"' in text
    assert 'route="unknown",status="404"' in text
    assert "wfcore_places 8.0" in text
    assert "exec_secret" not in text


def test_refused_deliveries_have_the_status_of_their_answer() -> None:
    """The owner of a webhook reads the status that the sender got. WH-20."""
    assert {error: STATUS[error] for error in REFUSED} == REFUSED
