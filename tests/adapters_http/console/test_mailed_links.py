"""A sign-in link by mail: for whoever has an account, and without telling who has. SE-10."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from adapters_http.app import HttpConfig
from adapters_runtime.notices.rendering import Words
from tests.support.http_world import World, a_world
from wfcore.model.access import OPERATOR, AccountStatus
from wfcore.model.notice import NoticeKind
from wfcore.ports.notices import Message, Receipt
from wfcore.time import HOUR, MINUTE
from wfcore.usecases.accounts import accounts
from wfcore.usecases.audit.auditing import read_audit

HTML = {"Accept": "text/html"}


class Post:
    """A `Notifier` on whose messages a test can wait, and that can be told to take its time."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[Message] = asyncio.Queue()
        self.open = asyncio.Event()
        self.open.set()

    async def send(self, message: Message) -> Receipt:
        await self.open.wait()
        self.sent.put_nowait(message)
        return Receipt("noted")


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[SimpleNamespace]:
    post = Post()
    async with a_world(tmp_path, HttpConfig(console=True, mail=post)) as world:
        yield SimpleNamespace(world=world, post=post)


async def ask(world: World, email: str):
    form = {"email": email, "password": "typed already", "next": "/inbox"}
    return await world.http.post("/sign-in/link", data=form, headers={"Origin": world.url, **HTML})


async def test_a_mailed_link_signs_in(office):
    """The button is there, the mail has the link, and the link works once. SE-7, SE-10."""
    world, post = office.world, office.post
    assert "Mail me a link" in (await world.http.get("/sign-in")).text
    answer = await ask(world, " Ann@Example.org ")
    assert (answer.status_code, "Check your mail" in answer.text) == (200, True)
    message = await post.sent.get()
    (line,) = message.lines
    assert (message.channel, message.to) == ("mail", "ann@example.org")
    assert line.kind is NoticeKind.SIGN_IN_LINK
    assert line.about == {"expiresAt": world.clock.now() + 15 * MINUTE}
    said = Words("https://wf.example.org").say(message)
    assert said.links == (("Sign in", f"https://wf.example.org{line.path}"),)
    entered = await world.http.post(line.path, headers={"Origin": world.url, **HTML})
    assert entered.status_code == 303
    assert "A mail tells you when something does" in (await world.http.get("/inbox")).text
    assert (await world.http.get(line.path)).status_code == 410
    entries = await read_audit(world.services, world.clock.now(), None, 99)
    assert line.path.removeprefix("/in/") not in repr(entries)


async def test_nobody_learns_who_has_an_account(office):
    """The same page for every email, while no mail is out yet: nothing waits for it. SE-10."""
    world, post = office.world, office.post
    await world.account("bob")
    await accounts.set_account(
        world.services,
        OPERATOR,
        (await accounts.find_account(world.services, "bob@example.org")).id,
        status=AccountStatus.DISABLED,
    )
    post.open.clear()
    texts = set()
    for email in ("ann@example.org", "bob@example.org", "eve@example.org", "no email"):
        answer = await ask(world, email)
        texts.add((answer.status_code, answer.text.replace(email, "")))
    assert len(texts) == 1
    post.open.set()
    assert (await post.sent.get()).to == "ann@example.org"
    assert post.sent.empty()


async def test_one_address_is_mailed_five_times_an_hour(office):
    """The sixth is answered alike and mailed nothing; in the next hour there are five more."""
    world, post = office.world, office.post
    world.clock.advance(HOUR - world.clock.now() % HOUR)
    for _ in range(2):
        answers = []
        for number in range(7):
            email = ("ann@example.org", "ANN@example.org")[number % 2]
            answers.append((await ask(world, email)).status_code)
        assert set(answers) == {200}
        for _ in range(5):
            await post.sent.get()
        assert post.sent.empty()
        world.clock.advance(HOUR)


async def test_an_address_that_asks_too_often_is_told_so(office):
    """As for passwords: 20 in a minute from one address, whatever the email. SE-6."""
    answers = [await ask(office.world, f"{number}@example.org") for number in range(21)]
    assert [one.status_code for one in answers] == [200] * 20 + [429]


async def test_an_email_must_be_typed(office):
    """An empty field is a sentence at the form."""
    answer = await ask(office.world, " ")
    assert (answer.status_code, ">Type your e-mail first.<" in answer.text) == (400, True)


async def test_without_mail_there_is_no_such_page(tmp_path: Path):
    """404, and no button. SE-10."""
    async with a_world(tmp_path, HttpConfig(console=True)) as world:
        assert (await ask(world, "ann@example.org")).status_code == 404
        assert "Mail me a link" not in (await world.http.get("/sign-in")).text
