"""Artifacts: their metadata under v1, and their content by link, key or session."""

from collections.abc import AsyncIterator

import httpx
import pytest

from adapters_http import downloads
from tests.support.http_world import World, bearer
from wfcore.model.access import Scope
from wfcore.model.execution import RefusedFile
from wfcore.ports.runtime import StepEnd
from wfcore.time import MINUTE

UNAUTHORIZED = b'{"error":"Unauthorized"}'


async def link_of(world: World, name: str = "report.txt", content: bytes = b"hello") -> str:
    execution, id = await world.with_artifact(name, content)
    answer = await world.get(f"/api/v1/executions/{execution}/artifacts/{id}")
    return str(answer.json()["downloadUrl"])


async def test_artifacts_are_listed_with_their_metadata(world: World):
    """`{artifacts, total}`, and one of them by id, with every documented field."""
    execution, id = await world.with_artifact()
    listed = (await world.get(f"/api/v1/executions/{execution}/artifacts")).json()
    assert listed["total"] == 1
    (one,) = listed["artifacts"]
    assert one.keys() == {
        "id", "name", "path", "storageKey", "downloadUrl", "previewable", "executionId",
        "stepName", "attempt", "size", "contentType", "sha256", "createdAt",
    }  # fmt: skip
    assert (one["id"], one["name"], one["size"], one["attempt"]) == (id, "report.txt", 5, 1)
    assert one["downloadUrl"].startswith(f"/api/executions/{execution}/artifacts/{id}/download?")
    assert (await world.get(f"/api/v1/executions/{execution}/artifacts/{id}")).json() == one


async def test_an_artifact_belongs_to_its_execution(world: World):
    """Below another execution, own or not, it is not there. AR-1."""
    execution, id = await world.with_artifact()
    other = await world.finished()
    assert (await world.get(f"/api/v1/executions/{other}/artifacts/{id}")).status_code == 404
    assert (await world.get(f"/api/executions/{other}/artifacts/{id}/download")).status_code == 404
    foreign = bearer((await world.new_key(await world.account("bob"))).text)
    url = f"/api/executions/{execution}/artifacts/{id}/download"
    assert (await world.get(url, headers=foreign)).status_code == 404


async def test_a_link_opens_the_content_as_it_is(world: World):
    """Without any credential, for 15 minutes, byte for byte. AR-2."""
    url = await link_of(world, content=b"a\0b\xff")
    answer = await world.http.get(url)
    assert (answer.status_code, answer.content) == (200, b"a\0b\xff")
    assert answer.headers["content-disposition"] == 'attachment; filename="report.txt"'
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]
    world.clock.advance(15 * MINUTE - 1)
    assert (await world.http.get(url)).status_code == 200
    world.clock.advance(1)
    late = await world.http.get(url)
    assert (late.status_code, late.content) == (401, UNAUTHORIZED)


async def test_a_changed_link_opens_nothing(world: World):
    """Another file, another time, another signature: 401 each, a good key beside it too. AR-2."""
    url = await link_of(world)
    other = (await link_of(world)).partition("?")[0]
    path, _, query = url.partition("?")
    expires, signature = query.split("&")
    for changed in (
        f"{other}?{query}",
        f"{path}?{expires}0&{signature}",
        f"{path}?{expires}&{signature[:-1]}g",
        f"{path}?{expires}&signature=",
        f"{path}?{expires}x&{signature}",
        f"{path}?{signature}",
    ):
        assert (await world.http.get(changed)).status_code == 401, changed
        assert (await world.get(changed)).status_code == 401


async def test_a_key_in_a_header_or_a_session_opens_it_too(world: World):
    """Without a signature: ARTIFACT_READ by header, or the console; never by query. AU-4."""
    url = (await link_of(world)).partition("?")[0]
    assert (await world.get(url)).content == b"hello"
    assert (await world.http.get(url, headers={"X-API-Key": world.key.text})).status_code == 200
    assert (await world.get(url, headers=await world.sign_in())).content == b"hello"
    assert (await world.http.get(f"{url}?api_key={world.key.text}")).status_code == 401
    lacking = await world.new_key(None, Scope.EXECUTION_READ)
    assert (await world.get(url, headers=bearer(lacking.text))).status_code == 401


@pytest.mark.parametrize("header", ["Authorization", "X-API-Key"])
async def test_a_key_that_is_sent_is_the_one_that_counts(world: World, header: str):
    """A session beside a key that opens nothing does not open it: whoever sends one means it."""
    url = (await link_of(world)).partition("?")[0]
    session = await world.sign_in()
    lacking = (await world.new_key(None, Scope.EXECUTION_READ)).text
    key = f"Bearer {lacking}" if header == "Authorization" else lacking
    assert (await world.http.get(url, headers=session)).status_code == 200
    assert (await world.http.get(url, headers={**session, header: key})).status_code == 401


@pytest.mark.parametrize("begun", [False, True])
async def test_content_that_breaks_off_is_no_whole_answer(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, begun: bool
):
    """Before its first byte a defect is 500; later the connection ends, and the log has it."""

    async def read(*_: object) -> AsyncIterator[bytes]:
        if begun:
            yield b"he"
        raise RuntimeError("secret-in-message")

    monkeypatch.setattr(world.services.files, "read", read)
    url = await link_of(world)
    if begun:
        with pytest.raises(httpx.RemoteProtocolError):
            await world.http.get(url)
    else:
        answer = await world.http.get(url)
        assert (answer.status_code, answer.json()) == (500, {"error": "Internal error"})
    (line,) = [vars(one) for one in caplog.records if one.name == "wfcore.http"]
    assert line["msg"] == "request.failed"
    assert line["error"] in ("RuntimeError", "ExceptionGroup")  # older Starlettes wrap it
    assert "secret-in-message" not in str(line)
    assert "Exception in ASGI application" not in caplog.text  # no second answer was begun


async def test_downloads_take_from_no_quota(world: World):
    """Neither by link nor by key. RL-5."""
    url = await link_of(world)
    before = (await world.get("/api/v1/workflows")).headers["x-ratelimit-remaining"]
    for _ in range(3):
        await world.http.get(url)
        answer = await world.get(url.partition("?")[0])
        assert "x-ratelimit-limit" not in answer.headers
    after = (await world.get("/api/v1/workflows")).headers["x-ratelimit-remaining"]
    assert int(after) == int(before) - 1


async def test_ranges_and_heads_work(world: World):
    """206 with the part asked for, 416 beyond the end, HEAD without content."""
    url = await link_of(world, content=b"0123456789")
    part = await world.http.get(url, headers={"Range": "bytes=2-4"})
    assert (part.status_code, part.content) == (206, b"234")
    assert part.headers["content-range"] == "bytes 2-4/10"
    other = {"Range": "bytes=2-4", "If-Range": '"of another version"'}
    assert (await world.http.get(url, headers=other)).content == b"0123456789"
    beyond = await world.http.get(url, headers={"Range": "bytes=10-"})
    assert (beyond.status_code, beyond.headers["content-range"]) == (416, "bytes */10")
    head = await world.http.head(url)
    assert (head.content, head.headers["content-length"]) == (b"", "10")


async def test_content_that_is_gone_is_404(world: World):
    """A record without its file is not found, and nothing has begun to be sent."""
    url = await link_of(world)
    await world.services.files.delete_executions(url.split("/")[3])
    answer = await world.http.get(url)
    assert (answer.status_code, answer.json().keys()) == (404, {"error"})


async def test_what_was_refused_is_in_the_step_result(world: World):
    """The result of a step names what it left that is no artifact, with the reason. CS-10."""
    execution_id = await world.start(await world.workflow())
    await world.run(StepEnd("done", refused=(RefusedFile("door", "a link"),)))
    view = (await world.get(f"/api/v1/executions/{execution_id}")).json()
    (step,) = view["stepResults"].values()
    assert step["refusedArtifacts"] == [{"name": "door", "reason": "a link"}]
    assert step["status"] == "COMPLETED"


@pytest.fixture
def led(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Contents are in a bucket to which links lead."""

    async def direct_url(key: str) -> str:
        return f"https://bucket.example/{key}?for=a-minute"

    monkeypatch.setattr(world.services.files, "direct_url", direct_url)


@pytest.mark.usefixtures("led")
async def test_a_link_leads_to_the_bucket(world: World):
    """Past us, once it is verified, for whoever opens it without a key; nobody may keep that."""
    url = await link_of(world)
    answer = await world.http.get(url)
    assert answer.status_code == 302
    assert answer.headers["location"].startswith("https://bucket.example/exec")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert (await world.http.get(url + "0")).status_code == 401
    world.clock.advance(15 * MINUTE)
    assert (await world.http.get(url)).status_code == 401


@pytest.mark.usefixtures("led")
async def test_a_key_is_not_led_away_to_a_bucket(world: World):
    """Whoever sends a key is given the content by us: clients pass headers on to wherever."""
    url = await link_of(world)
    for headers in (world.bearer, {"X-API-Key": world.key.text}):
        answer = await world.http.get(url, headers=headers)
        assert (answer.status_code, answer.content) == (200, b"hello")
    bare = url.partition("?")[0]
    assert (await world.get(bare)).content == b"hello"
    assert (await world.http.get(bare, headers=await world.sign_in())).content == b"hello"
    assert (await world.http.head(url)).status_code == 200


@pytest.mark.usefixtures("led")
@pytest.mark.parametrize(("shown", "status"), [(5, 200), (4, 302)])
async def test_what_a_browser_shows_goes_through_us(
    world: World, monkeypatch: pytest.MonkeyPatch, shown: int, status: int
):
    """With the sandbox that a bucket does not give; what is too large to look at is saved."""
    monkeypatch.setattr(downloads, "LARGEST_DISPLAYED", shown)
    execution, id = await world.with_artifact("a.txt", previewable=True)
    url = (await world.get(f"/api/v1/executions/{execution}/artifacts/{id}")).json()["downloadUrl"]
    answer = await world.http.get(url)
    assert answer.status_code == status
    assert ("sandbox" in answer.headers.get("content-security-policy", "")) == (status == 200)
