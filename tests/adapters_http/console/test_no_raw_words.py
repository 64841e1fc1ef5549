"""What pages say in words: states, reasons and scopes, never as programs call them."""

import re
from collections.abc import Iterator
from enum import StrEnum
from html.parser import HTMLParser
from pathlib import Path

import pytest

import wfcore.errors
import wfcore.model
from adapters_http.app import HttpConfig
from adapters_http.console.words import ACCOUNTS, DENIALS, SCOPES
from wfcore.errors import AuthReason
from wfcore.model.access import OPERATOR, AccountStatus, Scope, Tier
from wfcore.usecases.accounts import accounts
from wfcore.usecases.audit.auditing import _REFUSED  # pyright: ignore[reportPrivateUsage]

from .conftest import Site
from .test_editing import read
from .test_executions import Reader
from .test_targets import addresses
from .test_weight import approvals

CODE = ("code", "pre", "script", "style", "textarea")
"""What shows code, ids and names of events as such."""
TOKEN = re.compile(r"[A-Za-z]+(?:[._][A-Za-z]+)*")


def raw_words() -> set[str]:
    """What programs call things, as no page does; plans are called so on the price list, too."""
    assert wfcore.model
    assert wfcore.errors
    kinds = [one for one in StrEnum.__subclasses__() if one.__module__.startswith("wfcore.")]
    values = {str(value) for kind in kinds if kind is not Tier for value in kind}
    return {one for one in values if one.isupper() or re.search("[a-z][._][a-z]", one)}


class _Text(HTMLParser):
    """The text of a page outside of `CODE`."""

    def __init__(self) -> None:
        super().__init__()
        self.said, self._within = list[str](), list[str]()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in CODE:
            self._within.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._within and tag == self._within[-1]:
            self._within.pop()

    def handle_data(self, data: str) -> None:
        if not self._within:
            self.said.append(data)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path, HttpConfig(console=True, read_definition=read))
    yield made
    made.close()


def _denied(site: Site) -> None:
    """Refusals for the audit log, and an account that is locked."""
    world = site.world
    for key in ("", "wfk_bad", f"{world.key.text[:-1]}x"):
        site.do(world.http.get("/api/v1/workflows", headers={"X-API-Key": key}))
    site.do(world.post("/api/v1/approvals/appr_none/approve"))
    other = site.do(world.account("locked"))
    site.do(accounts.set_account(world.services, OPERATOR, other.id, status=AccountStatus.LOCKED))


def test_every_page_speaks_in_words(site: Site):
    """No value of an enumeration stands in a text of a page. PG-8."""
    _denied(site)
    paths, raw = [*approvals(site), *addresses(site)], raw_words()
    reader = Reader(site)
    assert {"SESSION_INVALID".lower(), "WORKFLOW_READ", "ACTIVE", "step.started"} <= raw
    found, denied = dict[str, set[str]](), ""
    for path in paths:
        text = _Text()
        text.feed(html := reader.get(path).text)
        denied += html if path == "/operate/audit" else ""
        said = {part for part in text.said if raw.intersection(TOKEN.findall(part))}
        if said:
            found[path] = said
    assert found == {}
    assert "not found" in denied
    assert "malformed key" in denied


def test_every_value_has_its_words():
    """Of scopes, of states of accounts, and of why something was denied."""
    assert set(SCOPES) == set(Scope)
    assert set(ACCOUNTS) == set(AccountStatus)
    assert set(DENIALS) >= {*AuthReason, *_REFUSED.values()}
