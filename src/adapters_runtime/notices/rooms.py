"""
The rooms: chats with an incoming webhook, and an operator's own signed webhooks. Decision 138.

Each kind of room is a function that gives a message its form. The client of callbacks sends all
messages, under the same rules for addresses (CB-4). No message or error shows a room's address,
which is a credential.
"""

import json
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit, urlunsplit

from attrs import evolve, field, frozen

from adapters_runtime.notices.rendering import NoticeText, Words
from wfcore.errors import InvalidInput
from wfcore.model.json import JsonObject
from wfcore.ports.callbacks import CallbackClient
from wfcore.ports.notices import Message, NotDelivered, NoticeDelayed, NoticeRefused, Receipt
from wfcore.ports.system import Clock
from wfcore.rules.callback import SECRET_PREFIX, check_url, signed
from wfcore.time import SECOND, DurationMs

LONGEST = 1_800
"""The most characters of a text. Discord takes 2,000, other chats take more."""
SHORT_MS = DurationMs(30 * SECOND)
_MAY_PASS = (408, 425, 429)


@frozen
class NoticeRoom:
    """The destination of a channel. `token` is the part of its URL after the #."""

    form: str
    url: str = field(repr=False)
    token: str = field(default="", repr=False)


def read_room(setting: str, text: str, allow_private: bool) -> NoticeRoom:
    """The room in a setting such as `slack+https://…`. Raises `InvalidInput`."""
    form, plus, rest = text.partition("+")
    if not plus or form not in FORMS:
        beginnings = ", ".join(f"{name}+https://" for name in FORMS)
        raise InvalidInput(setting, f"must begin with one of {beginnings}")
    where = urlsplit(rest)
    url = urlunsplit(where._replace(fragment=""))
    try:
        check_url(url, allow_private)
    except InvalidInput as refused:
        raise InvalidInput(setting, f"its address {refused.fix}") from None
    if form == "webhook" and not where.fragment.startswith(SECRET_PREFIX):
        raise InvalidInput(setting, f"must end with the secret: #{SECRET_PREFIX}…")
    return NoticeRoom(form, url, where.fragment)


class RoomNotifier:
    """The `Notifier` of one room."""

    def __init__(
        self, room: NoticeRoom, client: CallbackClient, words: Words, clock: Clock
    ) -> None:
        self._room = room
        self._client = client
        self._words = words
        self._clock = clock

    async def send(self, message: Message) -> Receipt:
        """Post one message; see `Notifier`."""
        notice = self._words.say(message)
        url, headers, body = self._room.url, dict[str, str](), FORMS[self._room.form](notice)
        if self._room.form == "ntfy":
            url, body = _to_topic(url, body)
            headers = {"authorization": f"Bearer {self._room.token}"} if self._room.token else {}
        if self._room.form == "webhook":
            body = _event(message, notice)
        text = json.dumps(body).encode()
        if self._room.form == "webhook":
            headers = dict(signed(self._room.token, message.id, self._clock.now(), text))
        answer = await self._client.post(url, headers, text)
        if answer.postponed is not None:
            raise NoticeDelayed(answer.postponed, SHORT_MS)
        if answer.status is None:
            raise NotDelivered(answer.error or "no answer")
        return Receipt(_judged(answer.status, answer.retry_after_s))


def _judged(status: int, retry_after_s: int | None) -> str:
    result = f"answered {status}"
    if 200 <= status < 300:
        return result
    if retry_after_s is not None and status in (429, 503):
        raise NoticeDelayed(result, DurationMs(max(retry_after_s, 1) * SECOND))
    if 300 <= status < 500 and status not in _MAY_PASS:
        raise NoticeRefused(result)
    raise NotDelivered(result)


def _slack(notice: NoticeText) -> JsonObject:
    """Slack's markup, see https://docs.slack.dev/messaging/formatting-message-text"""
    links = "\n".join(f"<{url}|{_slack_text(label)}>" for label, url in notice.links)
    text = f"*{_slack_text(notice.title)}*\n{_slack_text(notice.body[:LONGEST])}\n{links}"
    return {"text": text.strip(), "unfurl_links": False}


def _slack_text(text: str) -> str:
    """*text* escaped, so that `<!channel>`, links and the like have no effect."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _teams(notice: NoticeText) -> JsonObject:
    """An Adaptive Card for a Teams workflow with a webhook."""
    notice = _honest(notice)
    texts: list[JsonObject] = [
        {"type": "TextBlock", "text": notice.title, "weight": "Bolder", "wrap": True},
        {"type": "TextBlock", "text": notice.body[:LONGEST].replace("\n", "\n\n"), "wrap": True},
    ]
    actions: list[JsonObject] = [
        {"type": "Action.OpenUrl", "title": label, "url": url} for label, url in notice.links
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


def _discord(notice: NoticeText) -> JsonObject:
    """A Discord message. Mentions in its text notify nobody, since no mention is parsed."""
    notice = _honest(notice)
    text = f"**{notice.title}**\n{_cut(notice)}"
    return {"content": text, "allowed_mentions": {"parse": []}}


def _honest(notice: NoticeText) -> NoticeText:
    """The text without links that hide behind a label, such as `[Open the approval](https://…)`."""
    title, body = (text.replace("](", "] (") for text in (notice.title, notice.body))
    links = tuple((label.replace("](", "] ("), url) for label, url in notice.links)
    return evolve(notice, title=title, body=body, links=links)


def _ntfy(notice: NoticeText) -> JsonObject:
    """A message for ntfy, published as JSON to the root of its server; see `_to_topic`."""
    click = {"click": notice.links[0][1]} if notice.links else {}
    return {"title": notice.title, "message": _cut(notice), **click}


def _google_chat(notice: NoticeText) -> JsonObject:
    """A Google Chat message, without angle brackets, which would make links and mentions."""
    return {"text": f"*{notice.title}*\n{_cut(notice)}".replace("<", "‹").replace(">", "›")}


def _cut(notice: NoticeText) -> str:
    links = "\n".join(f"{label}: {url}" for label, url in notice.links)[:LONGEST]
    return f"{notice.body[: LONGEST - len(links)]}\n{links}".strip()


def _to_topic(url: str, body: JsonObject) -> tuple[str, JsonObject]:
    """The URL and body for ntfy, which takes JSON at its root, with the topic in the JSON."""
    where = urlsplit(url)
    root, _, topic = where.path.rstrip("/").rpartition("/")
    return urlunsplit(where._replace(path=f"{root}/")), {"topic": topic, **body}


def _event(message: Message, notice: NoticeText) -> JsonObject:
    """The facts and the text for programs, by Standard Webhooks."""
    return {
        "type": f"notice.{message.kind}",
        "data": {
            "noticeId": message.id,
            "title": notice.title,
            "text": notice.body,
            "links": [url for _, url in notice.links],
            "notices": [{"kind": line.kind.value, "about": line.about} for line in message.lines],
        },
    }


FORMS: Mapping[str, Callable[[NoticeText], JsonObject]] = {
    "slack": _slack,
    "teams": _teams,
    "discord": _discord,
    "ntfy": _ntfy,
    "googlechat": _google_chat,
    "webhook": lambda notice: {},
}
"""The functions that give a message its form, by kind of room."""
