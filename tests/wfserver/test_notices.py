"""Channels as the operator sets them up: settings, doctor, `wfcore notice`, installed notifiers."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters_runtime.system import SystemClock
from tests.adapters_runtime.notices.mail_server import MailServer, a_mail_server, text_of
from wfcore.errors import InvalidInput
from wfcore.model.notice import NoticeKind
from wfcore.ports.notices import Message, NoticeLine
from wfserver.compose import open_system
from wfserver.notices import new_notifier
from wfserver.settings.record import UnknownSetting, settings_from, take_environment

from .conftest import Call

SECRET = "s3cret-password"
MAIL = {"WFCORE_SMTP_URL": f"smtp://a:{SECRET}@h", "WFCORE_MAIL_FROM": "flows@example.org"}


@pytest.fixture
def post() -> Iterator[MailServer]:
    with a_mail_server() as server:
        yield server


def test_channels_come_from_the_environment() -> None:
    """Mail by its URL, every other by its name; nothing of them is shown."""
    chat = "https://hooks.example.org/T0/s3cret"
    named = {"WFCORE_NOTIFY_FINANCE": f"slack+{chat}", "WFCORE_NOTIFY_OPS_2": f"teams+{chat}"}
    settings = settings_from({**MAIL, **named, "WFCORE_LANGUAGE": "de", "WFCORE_MAIL_ROWS": "5"})
    assert settings.policy.channels == {"mail", "finance", "ops_2"}
    assert (settings.policy.language, settings.policy.notice_rows) == ("de", 5)
    assert "s3cret" not in repr(settings)
    assert settings_from({}).policy.channels == frozenset()


@pytest.mark.parametrize(
    ("environment", "field"),
    [
        ({"WFCORE_SMTP_URL": "smtp://h"}, "WFCORE_MAIL_FROM"),
        ({**MAIL, "WFCORE_MAIL_FROM": "nobody"}, "WFCORE_MAIL_FROM"),
        ({**MAIL, "WFCORE_SMTP_URL": f"http://{SECRET}"}, "WFCORE_SMTP_URL"),
        ({"WFCORE_NOTIFY_MAIL": "slack+https://a.example.org"}, "WFCORE_NOTIFY_MAIL"),
        ({"WFCORE_LANGUAGE": "fr"}, "WFCORE_LANGUAGE"),
        ({"WFCORE_MAIL_ROWS": "51"}, "WFCORE_MAIL_ROWS"),
        ({"WFCORE_MAIL_ROWS": "-1"}, "WFCORE_MAIL_ROWS"),
    ],
)
def test_what_cannot_be_read_is_named(environment: dict[str, str], field: str) -> None:
    """The variable and the fix; never what it says."""
    with pytest.raises(InvalidInput) as refused:
        settings_from(environment)
    assert refused.value.field == field
    assert SECRET not in str(refused.value)


def test_a_misspelt_channel_is_refused() -> None:
    """A channel that is never told of is worse than a server that does not start."""
    with pytest.raises(UnknownSetting, match="WFCORE_NOTIFIE_X"):
        settings_from({"WFCORE_NOTIFIE_X": "slack+https://a.example.org"})


def test_credentials_leave_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No step inherits the password of the mail server, or the address of a chat."""
    for name, value in {**MAIL, "WFCORE_NOTIFY_X": "slack+https://a.example.org"}.items():
        monkeypatch.setenv(name, value)
    taken = take_environment()
    assert taken["WFCORE_NOTIFY_X"]
    assert not {"WFCORE_SMTP_URL", "WFCORE_NOTIFY_X"} & os.environ.keys()


def test_a_test_is_sent_at_once(
    wfcore: Call, post: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`notice test` needs no server, and says what came of it; so does `doctor --tell`."""
    for _ in range(3):
        monkeypatch.setenv("WFCORE_SMTP_URL", post.url)
        monkeypatch.setenv("WFCORE_MAIL_FROM", "flows@example.org")
        said = wfcore("notice", "test", "mail", "--to", "bob@example.org")
        if post.answers == [] and len(post.mails) == 1 and said.status == 0:
            assert said.out == "mail: handed in\n"
            assert "Notices arrive here." in text_of(post.mails[0])
            post.refuses()
        elif said.status:
            assert "answered 550" in said.err
    monkeypatch.setenv("WFCORE_SMTP_URL", post.url)
    found = wfcore("doctor", "--json", "--tell", "bob@example.org").json["checks"]
    checks = {check["name"]: check for check in found}
    assert checks["notice mail"]["detail"] == "handed in"
    assert checks["notices"]["cure"] == "set WFCORE_PUBLIC_URL"


def test_what_cannot_be_tested(wfcore: Call) -> None:
    """A channel that is not there names the setting."""
    said = wfcore("notice", "test")
    assert said.status == 1
    assert "WFCORE_SMTP_URL" in said.err


def test_the_list_and_a_retry(wfcore: Call) -> None:
    """Nothing yet; and nothing that could be tried again."""
    assert wfcore("notice", "list", "--status", "FAILED", "--json").json == {
        "items": [],
        "total": 0,
    }
    said = wfcore("notice", "retry", "ntc_1", "--json")
    assert said.status == 1
    assert json.loads(said.out) == {"error": "Notice not found"}


PLUGIN = """
from wfcore.ports.notices import Receipt

sent = []


class Pager:
    async def send(self, message):
        sent.append((url, message.id))
        return Receipt("paged")


def make(given, services):
    global url
    url = given
    return Pager()
"""


async def test_an_installed_package_is_a_channel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry point of `wfcore.notifiers` is called with the URL; an unknown one lists them."""
    (tmp_path / "own_pager.py").write_text(PLUGIN)
    info = tmp_path / "own_pager-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-pager\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[wfcore.notifiers]\npager = own_pager:make\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    settings = settings_from({"WFCORE_NOTIFY_OPS": "pager://team"}, data=str(tmp_path / "data"))
    async with open_system(settings, clock=SystemClock()) as system:
        notifier = new_notifier(settings.notices, None, False, system.services)
        assert notifier is not None
        line = NoticeLine(NoticeKind.TEST, "/")
        receipt = await notifier.send(Message("ntc_1", "ops", "", "en", (line,)))
        assert receipt.text == "paged"
        assert sys.modules["own_pager"].sent == [("pager://team", "ntc_1")]
        other = settings_from({"WFCORE_NOTIFY_OPS": "beeper://x"}, data=str(tmp_path / "data"))
        with pytest.raises(InvalidInput, match=r"WFCORE_NOTIFY_OPS: .*beeper.*pager"):
            new_notifier(other.notices, None, False, system.services)
