"""Chats and webhooks of one's own, at a receiver on loopback: what they get, what they answer."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from attrs import evolve
from standardwebhooks import Webhook

from adapters_runtime.engine.callbacks import HttpCallbackClient
from adapters_runtime.notices.rendering import Words
from adapters_runtime.notices.rooms import FORMS, RoomNotifier, read_room
from adapters_runtime.system import SystemClock
from tests.support.receiver import Receiver, a_receiver
from wfcore.errors import InvalidInput
from wfcore.ports.notices import NotDelivered, NoticeDelayed, NoticeRefused
from wfcore.testing.contracts import NotifierContract
from wfcore.testing.contracts.notifier import a_message
from wfserver.notices import Channels

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BASE = "https://flows.example.org"


class Chat:
    """The other side of a room."""

    channel, to, secret = "finance", "", "for=me"

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver
        self._lost = 0

    @property
    def received(self) -> Sequence[str]:
        return [one.body.decode() for one in self.receiver.received[self._lost :]]

    def refuses(self) -> None:
        self._answers(404)

    def fails(self) -> None:
        self._answers(500)

    def hangs_up(self) -> None:
        self._answers(-1)

    def _answers(self, status: int) -> None:
        self.receiver.answers.append(status)
        self._lost += 1


@pytest.fixture
def post() -> Iterator[Chat]:
    with a_receiver() as receiver:
        yield Chat(receiver)


def notifier_of(post: Chat, form: str, token: str = "") -> RoomNotifier:
    fragment = f"#{token}" if token else ""
    room = read_room("WFCORE_NOTIFY_FINANCE", f"{form}+{post.receiver.url}{fragment}", True)
    client = HttpCallbackClient(allow_private=True, timeout_s=10)
    return RoomNotifier(room, client, Words(BASE), SystemClock())


class TestSlack(NotifierContract):
    @pytest.fixture
    def notifier(self, post: Chat) -> RoomNotifier:
        return notifier_of(post, "slack")


class TestWebhook(NotifierContract):
    @pytest.fixture
    def notifier(self, post: Chat) -> RoomNotifier:
        return notifier_of(post, "webhook", SECRET)


async def sent(post: Chat, form: str, token: str = "", **more: Any) -> Any:
    await notifier_of(post, form, token).send(a_message(post, **more))
    return json.loads(post.received[-1])


TITLE = "review0"
LINK = f"{BASE}/approvals/appr_0"


async def test_slack(post: Chat) -> None:
    """Text with a link; nothing that a name holds is a mention or a link."""
    said = await sent(post, "slack")
    assert said["text"].startswith(f"*{TITLE}*\n")
    assert said["text"].endswith(f"<{LINK}|Open the approval>")
    assert "<!channel>" not in (await sent(post, "slack", step="<!channel>"))["text"]


async def test_teams(post: Chat) -> None:
    """An adaptive card with the link as a button."""
    (card,) = (await sent(post, "teams"))["attachments"]
    assert card["contentType"] == "application/vnd.microsoft.card.adaptive"
    title, text = card["content"]["body"]
    assert (title["text"], title["type"], text["type"]) == (TITLE, "TextBlock", "TextBlock")
    assert card["content"]["actions"] == [
        {"type": "Action.OpenUrl", "title": "Open the approval", "url": LINK}
    ]


async def test_discord(post: Chat) -> None:
    """At most 2,000 characters, and nobody is called by them."""
    said = await sent(post, "discord", step="@everyone " * 900)
    assert said["allowed_mentions"] == {"parse": []}
    assert len(said["content"]) <= 2_000
    assert said["content"].endswith(LINK)


@pytest.mark.parametrize("form", ["teams", "discord"])
async def test_no_link_hides_behind_other_words(post: Chat, form: str) -> None:
    """Whoever writes what is asked cannot put another address behind the words of ours."""
    said = json.dumps(await sent(post, form, step="[Open the approval](https://evil.example)"))
    assert "evil.example" in said
    assert "](https://evil" not in said


async def test_ntfy(post: Chat) -> None:
    """JSON at the root, the topic from the path; a token is a bearer."""
    said = await sent(post, "ntfy", "tk_1")
    assert (said["topic"], said["title"], said["click"]) == ("told", TITLE, LINK)
    (request,) = post.receiver.received
    assert request.path == "/?for=me"
    assert request.headers["authorization"] == "Bearer tk_1"


async def test_google_chat(post: Chat) -> None:
    """Angle brackets would be links and mentions."""
    assert "<users/all>" not in (await sent(post, "googlechat", step="<users/all>"))["text"]


async def test_a_signed_webhook(post: Chat) -> None:
    """Standard Webhooks: the id of the notice, and a signature that the usual library verifies."""
    await notifier_of(post, "webhook", SECRET).send(a_message(post))
    (request,) = post.receiver.received
    headers = {name.lower(): value for name, value in request.headers.items()}
    said = Webhook(SECRET).verify(request.body, headers)
    assert headers["webhook-id"] == "msg_ntc_1"
    assert said["type"] == "notice.approval.opened"
    assert said["data"]["notices"][0]["about"]["rows"] == 3
    assert said["data"]["links"] == [LINK]


@pytest.mark.parametrize(
    ("status", "raised"),
    [
        *((status, None) for status in (200, 204)),
        *((status, NoticeRefused) for status in (301, 400, 404, 410)),
        *((status, NotDelivered) for status in (408, 429, 500, 503)),
    ],
)
async def test_answers(post: Chat, status: int, raised: type[Exception] | None) -> None:
    """What a status means: done, refused for good, or to be tried again."""
    post.receiver.answers = [status]
    notifier = notifier_of(post, "slack")
    if raised is None:
        assert (await notifier.send(a_message(post))).text == f"answered {status}"
        return
    with pytest.raises(NotDelivered) as failed:
        await notifier.send(a_message(post))
    assert type(failed.value) is raised


async def test_retry_after_is_heeded(post: Chat) -> None:
    """Who says when to come again is believed."""
    post.receiver.answers = [429]
    post.receiver.retry_after = "7"
    with pytest.raises(NoticeDelayed) as delayed:
        await notifier_of(post, "slack").send(a_message(post))
    assert delayed.value.after_ms == 7_000


async def test_private_addresses_are_refused(post: Chat) -> None:
    """CB-4: rooms follow the rules of callbacks, in the setting and at each call."""
    with pytest.raises(InvalidInput, match="WFCORE_NOTIFY_X: its address must not be a private"):
        read_room("WFCORE_NOTIFY_X", "slack+http://127.0.0.1/x", False)
    room = evolve(read_room("X", "slack+http://a.example.org/x", False))
    room = evolve(room, url=post.receiver.url.replace("127.0.0.1", "localhost"))
    client = HttpCallbackClient(timeout_s=10)
    notifier = RoomNotifier(room, client, Words(None), SystemClock())
    with pytest.raises(NotDelivered, match="private or a loopback"):
        await notifier.send(a_message(post))
    assert post.received == []


@pytest.mark.parametrize(
    ("url", "fix"),
    [
        ("https://example.org/x", "must begin with one of slack+https://"),
        ("irc+https://example.org/x", "must begin with one of slack+https://"),
        ("slack+ftp://example.org/x", "its address must be an address that begins with http"),
        ("webhook+https://example.org/x", "must end with the secret"),
    ],
)
def test_urls_that_cannot_be_read(url: str, fix: str) -> None:
    """The setting and what it wants are named; the URL is a credential, and is not repeated."""
    with pytest.raises(InvalidInput) as refused:
        read_room("WFCORE_NOTIFY_X", url, False)
    assert fix in str(refused.value)
    assert "example.org" not in str(refused.value)


async def test_a_channel_that_is_not_set_up_is_refused_by_name(post: Chat) -> None:
    """NT-2: operators read which setting is missing."""
    with pytest.raises(NoticeRefused, match="WFCORE_NOTIFY_FINANCE is not set"):
        await Channels({}).send(a_message(post))


def test_every_form_is_tried() -> None:
    """A new form has a test here."""
    assert set(FORMS) == {"slack", "teams", "discord", "ntfy", "googlechat", "webhook"}
