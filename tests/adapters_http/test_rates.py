"""Quotas as callers meet them: exact, in headers and bodies, per key."""

import asyncio

from tests.support.http_world import World, bearer
from wfcore.model.access import Scope, Tier, Window
from wfcore.time import DAY, MINUTE, EpochMs

URL = "/api/v1/workflows"


async def free_key(world: World) -> dict[str, str]:
    """A key of a FREE account, at the start of a minute."""
    world.clock.advance(MINUTE - world.clock.now() % MINUTE)
    return bearer((await world.new_key(await world.account("carl", Tier.FREE))).text)


async def test_exactly_the_limit_is_admitted(world: World):
    """Of a hundred at once on FREE, sixty pass and forty are 429. RL-1, RL-4."""
    headers = await free_key(world)
    answers = await asyncio.gather(*(world.get(URL, headers=headers) for _ in range(100)))
    statuses = [answer.status_code for answer in answers]
    assert (statuses.count(200), statuses.count(429)) == (60, 40)
    left = [int(a.headers["x-ratelimit-remaining"]) for a in answers if a.status_code == 200]
    assert sorted(left) == list(range(60))


async def test_a_429_says_when_to_come_back(world: World):
    """Limit, window and Retry-After in headers and body, to the window's end. RL-3, ER-3."""
    headers = await free_key(world)
    for _ in range(60):
        good = await world.get(URL, headers=headers)
    assert good.headers["x-ratelimit-limit"] == "60"
    assert good.headers["x-ratelimit-window"] == "minute"
    world.clock.advance(59_001)
    refused = await world.get(URL, headers=headers)
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "1"
    assert refused.headers["x-ratelimit-limit"] == "60"
    assert refused.headers["x-ratelimit-window"] == "minute"
    body = refused.json()
    assert body.keys() == {"error", "window", "limit", "retryAfterSeconds"}
    assert (body["window"], body["limit"], body["retryAfterSeconds"]) == ("minute", 60, 1)
    world.clock.advance(998)
    assert (await world.get(URL, headers=headers)).status_code == 429
    world.clock.advance(1)
    assert (await world.get(URL, headers=headers)).status_code == 200


async def test_a_full_day_is_told_before_a_full_minute(world: World):
    """With the day full the window is `day`, and it ends at midnight UTC. RL-2, RL-3."""
    headers = await free_key(world)
    key_id = headers["Authorization"].split("_")[1]
    now = world.clock.now()
    day = Window("day", EpochMs(now - now % DAY), EpochMs(now - now % DAY + DAY), None)
    for _ in range(1_999):
        await world.services.counters.take(f"key:{key_id}", (day,), now)
    last = await world.get(URL, headers=headers)
    assert (last.status_code, last.headers["x-ratelimit-window"]) == (200, "day")
    assert last.headers["x-ratelimit-remaining"] == "0"
    refused = await world.get(URL, headers=headers)
    assert (refused.status_code, refused.json()["window"]) == (429, "day")
    assert refused.json()["limit"] == 2_000
    assert refused.json()["retryAfterSeconds"] == -(-(DAY - now % DAY) // 1_000)


async def test_admitted_requests_count_whatever_their_answer(world: World):
    """404 and 400 take from the quota; 401 and 403 do not. RL-4, RL-5."""
    lacking = bearer((await world.new_key(None, Scope.ARTIFACT_READ)).text)

    async def left() -> int:
        return int((await world.get(URL)).headers["x-ratelimit-remaining"])

    before = await left()
    assert (await world.get(f"{URL}/wf_0")).headers["x-ratelimit-remaining"] == str(before - 1)
    assert (await world.get(f"{URL}?page=0")).status_code == 400
    assert (await world.get(URL, headers=lacking)).status_code == 401
    assert (await world.http.get(URL)).status_code == 401
    assert (await world.get("/nope")).status_code == 404
    assert await left() == before - 3


async def test_keys_do_not_share_a_quota(world: World):
    """Each key has its own, whoever owns it. RL-5."""
    other = bearer((await world.new_key()).text)
    for _ in range(3):
        await world.get(URL)
    assert (await world.get(URL, headers=other)).headers["x-ratelimit-remaining"] == "299"


async def test_a_webhook_without_key_has_a_quota_to_itself(world: World):
    """Its owner's plan, beside the quotas of the owner's keys. RL-5."""
    id = await world.webhook(api_key_id=None)
    answer = await world.http.post(f"/api/webhooks/{id}/trigger")
    assert answer.headers["x-ratelimit-remaining"] == "299"
    assert (await world.get(URL)).headers["x-ratelimit-remaining"] == "299"
    answer = await world.http.post(f"/api/webhooks/{id}/trigger")
    assert answer.headers["x-ratelimit-remaining"] == "298"


async def test_console_and_health_have_no_quota(world: World):
    """Only admitted requests of a key or webhook carry the headers. RL-6."""
    session = await world.sign_in()
    for path, headers in (("/api/webhooks", session), ("/healthz", {})):
        answer = await world.get(path, headers=headers)
        assert "x-ratelimit-limit" not in answer.headers


async def test_streams_and_empty_answers_say_what_is_left(world: World):
    """What is no JSON has the headers of every answer, too. RL-6."""
    id = await world.finished()
    before = int((await world.get("/api/v1/workflows")).headers["x-ratelimit-remaining"])
    url = f"/api/v1/executions/{id}/events"
    stream = await world.get(url)
    nothing = await world.get(url, headers={**world.bearer, "Last-Event-ID": "5"})
    assert (stream.status_code, nothing.status_code) == (200, 204)
    left = [int(one.headers["x-ratelimit-remaining"]) for one in (stream, nothing)]
    assert left == [before - 1, before - 2]
    for one in (stream, nothing):
        assert one.headers["x-request-id"].startswith("req_")
        assert one.headers["x-content-type-options"] == "nosniff"
