"""
What the editor says of a text as it is typed: its mistakes, its flow, its names, and how its tests
went. The mistakes are those of `apply`, at their lines.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from starlette.responses import Response

from adapters_http.console.forms import CheckForm
from adapters_http.console.language import _
from adapters_http.console.pictures import PlainPicture, plain_picture
from adapters_http.console.rendering import page
from adapters_http.request import Request
from wfcore.errors import Forbidden, InvalidDefinition, NotFound, Problem
from wfcore.model.access import Permission
from wfcore.model.workflow import Definition, Workflow
from wfcore.rules.auth.access import includes
from wfcore.rules.paths import line_of
from wfcore.time import DurationMs
from wfcore.usecases.workflows.authoring import started_by
from wfcore.usecases.workflows.browsing import read_permitted
from wfcore.usecases.workflows.versions import WorkflowChange, preview_workflow
from wfcore.usecases.workflows.workflows import doubts

if TYPE_CHECKING:
    from wfcore.scenarios.judging import ScenarioResult


@frozen
class Trial:
    """How the tests went, or the mistakes in their text."""

    results: "Sequence[ScenarioResult]" = ()
    problems: Sequence[Problem] = ()

    @property
    def failed(self) -> int:
        """The number of scenarios that went otherwise than expected."""
        return sum(bool(one.wrong) for one in self.results)

    @property
    def passed(self) -> DurationMs:
        """The time that passed in all of them."""
        return DurationMs(sum(one.passed or 0 for one in self.results))

    @property
    def ms(self) -> int:
        """The time that they took."""
        return round(sum(one.seconds for one in self.results) * 1_000)


@frozen
class CheckedText:
    """
    A text with its mistakes; without any, with its definition and the `doubts` about its people.
    `trial`: None if not played.
    """

    problems: Sequence[Problem] = ()
    definition: Definition | None = None
    trial: Trial | None = None
    doubts: Sequence[str] = ()

    @property
    def picture(self) -> PlainPicture | None:
        """The flow of the definition."""
        return plain_picture(self.definition) if self.definition else None

    @property
    def names(self) -> Mapping[str, Sequence[str]]:
        """What templates may name, for completion."""
        one = self.definition
        if one is None:
            return {}
        steps = [step.name for step in one.walk()]
        return {"steps": steps, "variables": [*one.variables], "state": [*one.state]}


async def check(request: Request) -> Response:
    """The parts of the editor that depend on the text, for a script."""
    form = request.body
    assert isinstance(form, CheckForm)
    workflow = await editable(request, form.workflow) if form.workflow else None
    text, tests = unix(form.text), unix(form.tests)
    checked = await check_text(request, workflow, text, tests, play=bool(form.play))
    return page(request, "checked.html", checked=checked, tests=tests)


async def editable(request: Request, id: str) -> Workflow:
    """The workflow. Raises `NotFound`, also without an editor here; `Forbidden` without EDIT."""
    require_editor(request)
    found, held = await read_permitted(request.services, request.who, id)
    if not includes(held, Permission.EDIT):
        raise Forbidden(f"This needs the permission {Permission.EDIT} on the workflow")
    return found.workflow


def require_editor(request: Request) -> None:
    """Raises `NotFound` on a server without an editor."""
    config = request.context.config
    if not config.console_edits or config.read_definition is None:
        raise NotFound("Page")


def unix(text: str) -> str:
    """*text* with the line ends that files have; browsers send others."""
    return text.replace("\r\n", "\n")


async def check_text(
    request: Request, workflow: Workflow | None, text: str, tests: str, *, play: bool
) -> CheckedText:
    """The *text* checked as `apply` does; *workflow* None: as a new one. With *play* its tests."""
    try:
        definition = await read_text(request, workflow, text)
    except InvalidDefinition as wrong:
        return CheckedText(wrong.problems)
    problems = await _refusals(request, workflow, definition, text)
    trial = await _played(request, workflow, definition, tests) if play else None
    return CheckedText(problems, definition, trial, await doubts(request.services, definition))


async def read_text(request: Request, workflow: Workflow | None, text: str) -> Definition:
    """The definition in *text*, with the name of *workflow*. Raises `InvalidDefinition`."""
    require_editor(request)
    config = request.context.config
    assert config.read_definition is not None
    data = text.encode("utf-8", "replace")
    definition = await asyncio.to_thread(config.read_definition, data)
    if workflow is not None and definition.name != workflow.name:
        fix = f"must stay {workflow.name!r}: other workflows and programs refer to it by name"
        raise located(request, text, (Problem("name", fix),))
    return definition


async def _refusals(
    request: Request, workflow: Workflow | None, definition: Definition, text: str
) -> Sequence[Problem]:
    """The mistakes that only the store knows."""
    owner = workflow.owner_id if workflow else request.who.account.id
    try:
        found = await preview_workflow(request.services, owner, definition, text)
    except InvalidDefinition as wrong:
        return located(request, text, wrong.problems).problems
    if workflow is None and found.change is not WorkflowChange.CREATED:
        taken = Problem("name", _("You have a workflow of that name already; take another name"))
        return located(request, text, (taken,)).problems
    return ()


def located(request: Request, text: str, problems: Sequence[Problem]) -> InvalidDefinition:
    """The *problems* with their lines in *text*."""
    lines = request.context.config.read_lines(text.encode("utf-8", "replace"))
    return InvalidDefinition(
        tuple(evolve(one, line=one.line or line_of(one.path, lines)) for one in problems)
    )


async def _played(
    request: Request, workflow: Workflow | None, definition: Definition, tests: str
) -> Trial:
    play, services = request.context.config.play_scenarios, request.services
    if play is None:
        return Trial()
    owner = workflow.owner_id if workflow else request.who.account.id
    others = await started_by(services, owner, definition)
    try:
        return Trial(
            await asyncio.to_thread(play, tests.encode("utf-8", "replace"), definition, others)
        )
    except InvalidDefinition as wrong:
        return Trial(problems=wrong.problems)
