"""Being told, with real parts: a store on disk, a mail server on loopback, the loop, the pages."""

import asyncio
import re
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from attrs import evolve

from adapters_http.app import HttpConfig
from adapters_runtime.engine.outbox import NoticeLoop
from adapters_runtime.expressions.templates import MiniJinjaTemplates
from adapters_runtime.notices.mail import MailNotifier, read_sender, read_smtp_url
from adapters_runtime.notices.rendering import Words
from tests.support.http_world import World, a_world
from wfcore.model.access import OPERATOR
from wfcore.model.notice import NoticeStatus
from wfcore.model.page import PageRequest
from wfcore.model.workflow import Variable
from wfcore.ports.notices import Message, Receipt
from wfcore.rules.notices.delivery import DELAYS
from wfcore.time import DAY, HOUR
from wfcore.usecases.notices.managing import list_notices
from wfcore.usecases.services import Policy

from .mail_server import MailServer, a_mail_server, text_of

BOB = "bob@example.org"
LONG_S = 60
CANARY = "canary-7e1f0c"


@pytest.fixture
def post() -> Iterator[MailServer]:
    with a_mail_server() as server:
        yield server


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A served application whose service has mail, with the real templates."""
    parts = {"policy": Policy(channels=frozenset({"mail"})), "templates": MiniJinjaTemplates()}
    async with a_world(tmp_path, HttpConfig(console=True), **parts) as made:
        yield made


def notifier(world: World, post: MailServer) -> MailNotifier:
    sender = read_sender("flows@example.org")
    return MailNotifier(read_smtp_url(post.url), sender, Words(world.url))


@asynccontextmanager
async def sending(world: World, by: MailNotifier) -> AsyncIterator[None]:
    loop = NoticeLoop(world.services, by)
    task = asyncio.create_task(loop.run())
    try:
        yield
    finally:
        loop.loop.stop()
        await task


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(LONG_S):
        while not holds():  # noqa: ASYNC110 - polls what has no event
            await asyncio.sleep(0.005)


async def states(world: World) -> list[NoticeStatus]:
    found = await list_notices(world.services, PageRequest())
    return [one.status for one in found.rows]


async def ended(world: World, status: NoticeStatus = NoticeStatus.SENT, count: int = 1) -> None:
    """Wait until so many notices have ended like this."""
    async with asyncio.timeout(LONG_S):
        while (await states(world)).count(status) < count:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.005)


async def test_an_approver_is_mailed_a_link_that_works(world: World, post: MailServer) -> None:
    """From the step to the page: the link of the mail opens the approval without signing in."""
    await world.paused(approvers=(BOB,))
    async with sending(world, notifier(world, post)):
        await ended(world)
    (mail,) = post.mails
    assert await states(world) == [NoticeStatus.SENT]
    (link,) = re.findall(r"http\S+", text_of(mail))
    seen = await world.http.get(link, headers={"Accept": "text/html"})
    assert f"you decide as {BOB}" in seen.text


async def test_links_fetched_a_hundred_times_change_nothing(
    world: World, post: MailServer, tmp_path: Path
) -> None:
    """Scanners of mail open every link; the database stays as it is, row by row."""
    await world.paused(approvers=(BOB,))
    async with sending(world, notifier(world, post)):
        await ended(world)
    links = {*re.findall(r'http[^\s"<]+', text_of(post.mails[0]))}
    links |= {*re.findall(r'href="([^"]+)"', text_of(post.mails[0], "html"))}
    assert len(links) == 1
    before = contents(tmp_path)
    for link in links:
        for _ in range(100):
            answer = await world.http.get(link, headers={"User-Agent": "a scanner of mail"})
            assert answer.status_code == 200
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table."""
    with closing(sqlite3.connect(folder / "wfcore.db")) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for (name,) in names}


async def test_killed_between_sending_and_recording(world: World, post: MailServer) -> None:
    """The mail was taken, its process is gone: one more comes, with the same Message-ID."""

    class Dying(MailNotifier):
        """Dies as soon as the mail server has the mail."""

        async def send(self, message: Message) -> Receipt:
            await super().send(message)
            await asyncio.Event().wait()
            raise AssertionError

    server, sender = read_smtp_url(post.url), read_sender("flows@example.org")
    await world.paused(approvers=(BOB,))
    async with sending(world, Dying(server, sender, Words(None))):
        await until(lambda: post.mails)
    assert await states(world) == [NoticeStatus.DUE]
    world.clock.advance(DELAYS[0])
    async with (
        sending(world, notifier(world, post)),
        sending(world, notifier(world, post)),
    ):
        await ended(world)
    assert await states(world) == [NoticeStatus.SENT]
    assert len(post.mails) == 2
    assert len({mail["Message-ID"] for mail in post.mails}) == 1


DIES = """
import asyncio, os, signal, sys
from pathlib import Path
from attrs import evolve
from adapters_runtime.notices.mail import MailNotifier, read_sender, read_smtp_url
from adapters_runtime.notices.rendering import Words
from tests.wfcore.usecases.conftest import a_world
from wfcore.usecases.notices.sending import take_notices

async def main(folder, url, now):
    async with a_world(None, Path(folder)) as world:
        world.clock.advance(int(now) - world.clock.now())
        (sending,) = await take_notices(world.services, 5)
        await MailNotifier(read_smtp_url(url), read_sender("a@example.org"), Words(None)).send(
            sending.message
        )
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_a_process_that_is_killed_after_sending(
    world: World, post: MailServer, tmp_path: Path
) -> None:
    """Killed with the mail taken, nothing recorded: one more of the same Message-ID, then none."""
    await world.paused(approvers=(BOB,))
    command = (sys.executable, "-c", DIES, str(tmp_path), post.url, str(world.clock.now()))
    killed = await asyncio.create_subprocess_exec(*command, cwd=Path(__file__).parents[3])
    assert await asyncio.wait_for(killed.wait(), LONG_S) == -signal.SIGKILL
    assert len(post.mails) == 1
    world.clock.advance(HOUR)
    async with sending(world, notifier(world, post)):
        await ended(world)
    world.clock.advance(DAY)
    assert await states(world) == [NoticeStatus.SENT]
    assert len(post.mails) == 2
    assert len({mail["Message-ID"] for mail in post.mails}) == 1


async def test_no_secret_is_in_a_mail(world: World, post: MailServer) -> None:
    """SC-1: what a message or a row would show of a secret is masked before it is written."""
    from wfcore.model.workflow import ApprovalStep, GroupSpec

    policy = evolve(world.services.policy, notice_rows=5)
    world = evolve(world, services=evolve(world.services, policy=policy))
    group = GroupSpec("rows", "Rows", [{"id": "{{ variables.token }}"}])
    said = "look at {{ variables.token }}"
    step = ApprovalStep("review", said, approvers=(BOB,), groups=(group,))
    secret = {"token": Variable("token", secret=True)}
    await world.start(await world.workflow(step, variables=secret), token=CANARY)
    await world.run()
    async with sending(world, notifier(world, post)):
        await ended(world)
    (mail,) = post.mails
    assert "look at ***" in text_of(mail) or "look at •••" in text_of(mail)
    assert CANARY not in mail.as_string() + text_of(mail) + text_of(mail, "html")


async def test_operators_manage_notices(world: World, post: MailServer) -> None:
    """NT-7, AC-7: listed, tried again, tested; for everybody else they do not exist."""
    from wfcore.usecases.accounts.accounts import set_account

    await world.paused(approvers=(BOB,))
    post.refuses()
    async with sending(world, notifier(world, post)):
        await ended(world, NoticeStatus.FAILED)
    ann = await world.sign_in()
    ways = (("GET", ""), ("POST", "/ntc_1/retry"), ("POST", "/test"))
    bodies = {"/test": {"channel": "mail", "to": BOB}}
    for method, path in ways:
        given = {"json": bodies.get(path, {})} if method == "POST" else {}
        answer = await world.http.request(method, f"/api/notices{path}", headers=ann, **given)
        assert answer.status_code == 404, path
    await set_account(world.services, OPERATOR, world.ann.id, operator=True)
    ann = await world.sign_in()
    listed = await world.http.get("/api/notices?status=FAILED", headers=ann)
    (one,) = listed.json()["notices"]
    assert (one["to"], one["lastError"]) == (BOB, "127.0.0.1 answered 550")
    retry = f"/api/notices/{one['id']}/retry"
    answers = [await world.http.post(retry, headers=ann) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 409]
    world.clock.advance(1)
    tested = await world.http.post("/api/notices/test", headers=ann, json=bodies["/test"])
    assert tested.json()["kind"] == "test"
    page = (await world.http.get("/api/notices?size=1", headers=ann)).json()
    rest = await world.http.get(f"/api/notices?size=1&after={page['next']}", headers=ann)
    both = [found["notices"][0]["id"] for found in (page, rest.json())]
    assert both == [tested.json()["id"], one["id"]]
    async with sending(world, notifier(world, post)):
        await ended(world, count=2)
    unknown = {"channel": "gone"}
    refused = await world.http.post("/api/notices/test", headers=ann, json=unknown)
    assert (refused.status_code, "there are: mail" in refused.text) == (400, True)
