"""
Explanations as sentences of a page: no ids, but links; no instants in UTC, but times. XP-1.

The words are the core's, which every channel shows. A page replaces what it can say better: the id
of an approval or an execution is a link, an instant a time of the reader's zone.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from attrs import frozen

from adapters_http.console.words import _
from adapters_http.request import Request
from wfcore.model.explanation import Line, Why
from wfcore.time import EpochMs
from wfcore.usecases.executions.browsing import Whole

_INSTANT = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ"


@frozen
class Piece:
    """Text, with a link or as an instant."""

    text: str
    href: str | None = None
    at: EpochMs | None = None


@frozen
class Sentence:
    """One line. `until`: when it changes by itself. `action`: the page where it is settled."""

    code: Why
    pieces: tuple[Piece, ...]
    until: EpochMs | None = None
    action: Piece | None = None


def sentences(request: Request, whole: Whole) -> Sequence[Sentence]:
    """The explanation of an execution, line by line."""
    here = f"{request.base_path}/executions/{whole.run.id}"
    return [sentence(line, request.base_path, here) for line in whole.explained.lines]


def sentence(line: Line, base: str = "", here: str = "") -> Sentence:
    """One line, with links below *base*; steps below *here*."""
    if line.code is Why.AWAITING_APPROVAL and line.approval_id:
        action = Piece(_("Open the approval"), f"{base}/approvals/{line.approval_id}")
        pieces = tuple(_awaited(here, line)) if line.required else tuple(_pieces(base, here, line))
        return Sentence(line.code, pieces, line.until, action)
    return Sentence(line.code, tuple(_pieces(base, here, line)), line.until)


def _awaited(here: str, line: Line) -> Iterator[Piece]:
    """Who may decide, and how many have."""
    who = _(" or ").join(line.approvers) or _("an owner, or somebody who may edit the workflow")
    yield Piece(_("Step "))
    yield Piece(line.step_name or "", f"{here}/steps/{line.step_name}")
    yield Piece(_(" waits for {who}").format(who=who))
    if line.required and line.required > 1:
        so_far = _(" ({given} of {required} have agreed)")
        yield Piece(so_far.format(given=line.given, required=line.required))
    yield Piece(_(". Without a decision it is rejected"))


def _pieces(base: str, here: str, line: Line) -> Iterator[Piece]:
    approval, execution = f"{base}/approvals/{line.approval_id}", f"{base}/executions/"
    other = Piece(_("an execution"), f"{execution}{line.execution_id}")
    named = {
        f"approval {line.approval_id}": Piece(_("an approval"), approval),
        f"Approval {line.approval_id}": Piece(_("An approval"), approval),
        f"execution {line.execution_id}": other,
        f"{line.execution_id}": other,
        f"'{line.step_name}'": Piece(line.step_name or "", f"{here}/steps/{line.step_name}"),
    }
    known = [re.escape(text) for text in named if "None" not in text]
    for text in re.split(f"({'|'.join((*known, _INSTANT))})", line.text):
        if text in named:
            yield named[text]
        elif re.fullmatch(_INSTANT, text):
            yield Piece(text, at=_instant(text))
        elif text:
            yield Piece(text)


def _instant(text: str) -> EpochMs:
    at = datetime.strptime(text, "%Y-%m-%d %H:%M:%SZ").replace(tzinfo=UTC)
    return EpochMs(int(at.timestamp() * 1_000))
