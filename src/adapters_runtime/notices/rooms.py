"""
Rooms: chats with an incoming webhook, and signed webhooks of one's own. Decision 138.

Each is a few lines that give a message its form. All go out by the client that sends callbacks,
under the same rules for addresses (CB-4), and the address, a credential, is never said.
"""

import json
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit, urlunsplit

from attrs import evolve, field, frozen

from adapters_runtime.notices.rendering import Rendered, Words
from wfcore.errors import InvalidInput
from wfcore.model.json import JsonObject
from wfcore.ports.callbacks import CallbackClient
from wfcore.ports.notices import Message, NotDelivered, NoticeDelayed, NoticeRefused
from wfcore.ports.system import Clock
from wfcore.rules.callback import SECRET_PREFIX, check_url, signed
from wfcore.time import SECOND, DurationMs

LONGEST = 1_800
"""Characters of a text: Discord takes 2,000, the others more."""
SHORT_MS = DurationMs(30 * SECOND)
_MAY_PASS = (408, 425, 429)


@frozen
class Room:
    """Where a channel goes: `token` is what stands behind the # of its URL."""

    form: str
    url: str = field(repr=False)
    token: str = field(default="", repr=False)


def read_room(setting: str, text: str, allow_private: bool) -> Room:
    """The room that a setting names: `slack+https://…`. Raises `InvalidInput`."""
    form, plus, rest = text.partition("+")
    if not plus or form not in FORMS:
        begun = ", ".join(f"{name}+https://" for name in FORMS)
        raise InvalidInput(setting, f"must begin with one of {begun}")
    where = urlsplit(rest)
    url = urlunsplit(where._replace(fragment=""))
    try:
        check_url(url, allow_private)
    except InvalidInput as refused:
        raise InvalidInput(setting, f"its address {refused.fix}") from None
    if form == "webhook" and not where.fragment.startswith(SECRET_PREFIX):
        raise InvalidInput(setting, f"must end with the secret: #{SECRET_PREFIX}…")
    return Room(form, url, where.fragment)


class RoomNotifier:
    """The `Notifier` of one room."""

    def __init__(self, room: Room, client: CallbackClient, words: Words, clock: Clock) -> None:
        self._room = room
        self._client = client
        self._words = words
        self._clock = clock

    async def send(self, message: Message) -> str:
        """Post one message; see `Notifier`."""
        said = self._words.say(message)
        url, headers, body = self._room.url, dict[str, str](), FORMS[self._room.form](said)
        if self._room.form == "ntfy":
            url, body = _to_topic(url, body)
            headers = {"authorization": f"Bearer {self._room.token}"} if self._room.token else {}
        if self._room.form == "webhook":
            body = _event(message, said)
        text = json.dumps(body).encode()
        if self._room.form == "webhook":
            headers = dict(signed(self._room.token, message.id, self._clock.now(), text))
        answer = await self._client.post(url, headers, text)
        if answer.postponed is not None:
            raise NoticeDelayed(answer.postponed, SHORT_MS)
        if answer.status is None:
            raise NotDelivered(answer.error or "no answer")
        return _judged(answer.status, answer.retry_after_s)


def _judged(status: int, retry_after_s: int | None) -> str:
    told = f"answered {status}"
    if 200 <= status < 300:
        return told
    if retry_after_s is not None and status in (429, 503):
        raise NoticeDelayed(told, DurationMs(max(retry_after_s, 1) * SECOND))
    if 300 <= status < 500 and status not in _MAY_PASS:
        raise NoticeRefused(told)
    raise NotDelivered(told)


def _slack(said: Rendered) -> JsonObject:
    """https://docs.slack.dev/messaging/formatting-message-text"""
    links = "\n".join(f"<{url}|{_slack_text(label)}>" for label, url in said.links)
    text = f"*{_slack_text(said.title)}*\n{_slack_text(said.body[:LONGEST])}\n{links}"
    return {"text": text.strip(), "unfurl_links": False}


def _slack_text(text: str) -> str:
    """Without `<!channel>`, links and the like."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _teams(said: Rendered) -> JsonObject:
    """An Adaptive Card, as a Teams workflow with a webhook takes it."""
    said = _honest(said)
    texts: list[JsonObject] = [
        {"type": "TextBlock", "text": said.title, "weight": "Bolder", "wrap": True},
        {"type": "TextBlock", "text": said.body[:LONGEST].replace("\n", "\n\n"), "wrap": True},
    ]
    actions: list[JsonObject] = [
        {"type": "Action.OpenUrl", "title": label, "url": url} for label, url in said.links
    ]
    card: JsonObject = {
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": texts,
        "actions": actions[:6],
    }
    content: JsonObject = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "content": card,
    }
    return {"type": "message", "attachments": [content]}


def _discord(said: Rendered) -> JsonObject:
    """Nobody is called by what a text says: no mention is parsed."""
    said = _honest(said)
    text = f"**{said.title}**\n{_cut(said)}"
    return {"content": text, "allowed_mentions": {"parse": []}}


def _honest(said: Rendered) -> Rendered:
    """Without links that hide behind other words: `[Open the approval](https://…)`."""
    title, body = (text.replace("](", "] (") for text in (said.title, said.body))
    links = tuple((label.replace("](", "] ("), url) for label, url in said.links)
    return evolve(said, title=title, body=body, links=links)


def _ntfy(said: Rendered) -> JsonObject:
    """Published as JSON to the root of the server; see `_to_topic`."""
    click = {"click": said.links[0][1]} if said.links else {}
    return {"title": said.title, "message": _cut(said), **click}


def _google_chat(said: Rendered) -> JsonObject:
    """Angle brackets would be links and mentions."""
    return {"text": f"*{said.title}*\n{_cut(said)}".replace("<", "‹").replace(">", "›")}


def _cut(said: Rendered) -> str:
    links = "\n".join(f"{label}: {url}" for label, url in said.links)[:LONGEST]
    return f"{said.body[: LONGEST - len(links)]}\n{links}".strip()


def _to_topic(url: str, body: JsonObject) -> tuple[str, JsonObject]:
    """ntfy takes JSON at its root, with the topic in it."""
    where = urlsplit(url)
    root, _, topic = where.path.rstrip("/").rpartition("/")
    return urlunsplit(where._replace(path=f"{root}/")), {"topic": topic, **body}


def _event(message: Message, said: Rendered) -> JsonObject:
    """For programs: the facts, and the words beside them. Standard Webhooks."""
    return {
        "type": f"notice.{message.kind}",
        "data": {
            "noticeId": message.id,
            "title": said.title,
            "text": said.body,
            "links": [url for _, url in said.links],
            "notices": [{"kind": line.kind.value, "about": line.about} for line in message.lines],
        },
    }


FORMS: Mapping[str, Callable[[Rendered], JsonObject]] = {
    "slack": _slack,
    "teams": _teams,
    "discord": _discord,
    "ntfy": _ntfy,
    "googlechat": _google_chat,
    "webhook": lambda said: {},
}
"""How each kind of room wants a message."""
