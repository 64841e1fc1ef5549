"""
Explanations as sentences of a page, with links instead of ids and local times. XP-1.

The sentences are phrases of the core, with template and facts, shown in the reader's language. The
id of an approval or an execution is a link, an instant is a time in the reader's zone. Of an error
the line with the cause is shown.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from string import Formatter

from attrs import frozen

from adapters_http.console.language import _
from adapters_http.console.words import SOURCES, STATUSES
from adapters_http.request import Request
from wfcore.model.explanation import Line, Why
from wfcore.rules.explain.source_lines import brief
from wfcore.rules.phrase import INSTANTS, Phrase, instant_text
from wfcore.time import EpochMs
from wfcore.usecases.executions.browsing import ExecutionDetail


@frozen
class Piece:
    """A text, perhaps with a link or an instant."""

    text: str
    href: str | None = None
    at: EpochMs | None = None


Links = Mapping[str, Callable[[str], Piece]]
"""Functions that make a piece from a fact, by the name of the fact."""


@frozen
class Sentence:
    """
    One line. `until`: the instant at which the line changes by itself. `action`: the link to the
    page where the reader can act.
    """

    code: Why
    pieces: tuple[Piece, ...]
    until: EpochMs | None = None
    action: Piece | None = None


def sentences(request: Request, whole: ExecutionDetail) -> Sequence[Sentence]:
    """The explanation of an execution, line by line."""
    here = f"{request.base_path}/executions/{whole.run.id}"
    return [sentence(line, request.base_path, here) for line in whole.explained.lines]


def sentence(line: Line, base: str = "", here: str = "") -> Sentence:
    """One line. Links to approvals and executions are below *base*, links to steps below *here*."""
    if line.code is Why.AWAITING_APPROVAL and line.approval_id:
        action = Piece(_("Open the approval"), f"{base}/approvals/{line.approval_id}")
        pieces = tuple(_awaited(here, line)) if line.required else tuple(_pieces(base, here, line))
        return Sentence(line.code, pieces, line.until, action)
    return Sentence(line.code, tuple(_pieces(base, here, line)), line.until)


def _awaited(here: str, line: Line) -> Iterator[Piece]:
    """The people who may decide, and the number of people who have agreed."""
    who = _(" or ").join(line.approvers) or _("an owner, or somebody who may edit the workflow")
    text = _("Step {step} waits for {who}. Without a decision it is rejected")
    if line.required and line.required > 1:
        text = _(
            "Step {step} waits for {who} ({given} of {required} have agreed). "
            "Without a decision it is rejected"
        )
    before, after = text.split("{step}")
    facts = {"who": who, "given": line.given, "required": line.required}
    yield Piece(before.format(**facts))
    yield Piece(line.step_name or "", f"{here}/steps/{line.step_name}")
    yield Piece(after.format(**facts))


def _pieces(base: str, here: str, line: Line) -> Iterator[Piece]:
    steps = f"{here}/steps/"
    links = {
        "step": lambda fact: Piece(fact, steps + fact),
        "approval": lambda fact: Piece(
            line.step_name or "…", f"{base}/approvals/{line.approval_id}"
        ),
        "execution": lambda fact: Piece(
            _("an execution"), f"{base}/executions/{line.execution_id}"
        ),
        "status": lambda fact: Piece(STATUSES[fact]),
        "source": lambda fact: Piece(SOURCES[fact]),
    }
    yield from _phrase_pieces(line.text, line.step_name, links, steps)


def _phrase_pieces(text: str, step: str | None, links: Links, steps: str) -> Iterator[Piece]:
    """A phrase in the reader's language. Of a plain text, an error, the line with its cause."""
    if not isinstance(text, Phrase):
        before, quoted, after = brief(text).partition(f"'{step}'")
        yield Piece(before)
        if quoted and step:
            yield Piece(step, steps + step)
        yield Piece(after)
        return
    template = _(text.template).replace("'{step}'", "{step}").replace("`", "")
    for before, name, _spec, _conversion in Formatter().parse(template):
        yield Piece(before)
        if name is None:
            continue
        fact = text.facts[name]
        if name in INSTANTS and isinstance(fact, int):
            yield Piece(instant_text(fact), at=EpochMs(fact))
        elif name in links:
            yield links[name](str(fact))
        else:
            yield from _phrase_pieces(
                fact if isinstance(fact, str) else str(fact), step, links, steps
            )
