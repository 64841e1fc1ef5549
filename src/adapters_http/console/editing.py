"""
The editor: the text of a definition, new or of the newest version, with its tests. Decision 165.

Without scripts it is a form: the checker of definitions names mistakes by line and path, and before
a text is stored, the page shows the change. Scripts make an editor of the same form. If another
version was stored meanwhile, the page shows both changes and keeps the text.
"""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from attrs import frozen
from starlette.responses import Response

from adapters_http.console.checking import (
    CheckedText,
    check_text,
    editable,
    located,
    read_text,
    require_editor,
    unix,
)
from adapters_http.console.forms import EditForm
from adapters_http.console.language import _
from adapters_http.console.paths import see_other
from adapters_http.console.rendering import page
from adapters_http.console.starting import start_fields
from adapters_http.request import Request
from wfcore.errors import Conflict, InvalidDefinition, NotFound
from wfcore.model.page import PageCursor, PageRequest
from wfcore.model.workflow import DefinitionSnapshot, Workflow
from wfcore.rules.definition.changes import Diff, diff
from wfcore.rules.definition.written import text_of, withheld
from wfcore.usecases.workflows.authoring import create_workflow
from wfcore.usecases.workflows.browsing import list_summaries, read_permitted, read_version
from wfcore.usecases.workflows.state import dropped_state
from wfcore.usecases.workflows.workflows import edit_workflow

EMPTY = """\
name: {name}
description: ""
steps:
  - name: hello
    kind: code
    language: python
    source: |
      import json, os
      json.dump({{"greeting": "Hello"}}, open(os.environ["WF_OUTPUT"], "w"))
"""
SAMPLE = """\
definition: this
scenarios:
  - name: it greets
    steps: {hello: {output: {greeting: Hello}}}
    expect: {status: COMPLETED}
"""
COPIED = 200
"""The most workflows that are offered for a copy."""


@frozen
class EditorText:
    """The texts in the editor, and the version on which they are based; 0: a new workflow."""

    text: str
    tests: str = ""
    version: int = 0


async def show(request: Request) -> Response:
    """The newest version in the editor."""
    workflow, found = await _present(request)
    draft = EditorText(text_of(found), found.tests, workflow.revision)
    if withheld(found.definition):
        return _form(request, workflow, EditorText("", "", workflow.revision), secret=True)
    checked = await check_text(request, workflow, draft.text, draft.tests, play=False)
    inputs = start_fields(found.definition)
    return _form(request, workflow, draft, checked=checked, fresh=True, inputs=inputs)


async def _present(request: Request) -> tuple[Workflow, DefinitionSnapshot]:
    """The workflow and its present version. Raises as `editable`."""
    workflow = await editable(request, request.params["id"])
    found = (await read_version(request.services, request.who, workflow.id, workflow.revision))[1]
    return workflow, found


async def choose(request: Request) -> Response:
    """What a new workflow begins with; with a choice in the query, the editor with that text."""
    require_editor(request)
    draft = await _chosen(request)
    if draft is not None:
        checked = await check_text(request, None, draft.text, draft.tests, play=False)
        return _form(request, None, draft, checked=checked, fresh=True)
    first = PageRequest(size=COPIED, after=PageCursor("", ""))
    mine = await list_summaries(request.services, request.who, first)
    shipped = request.context.config.example_definitions()
    return page(request, "new.html", examples=shipped, mine=mine.rows)


async def _chosen(request: Request) -> EditorText | None:
    """The text to begin with. Raises `NotFound`."""
    if request.query("empty"):
        return EditorText(EMPTY.format(name=_("My workflow")))
    if name := request.query("example"):
        for one in request.context.config.example_definitions():
            if one.name == name:
                return EditorText(one.text, one.tests)
        raise NotFound("Example")
    if not (id := request.query("copy")):
        return None
    known, _permission = await read_permitted(request.services, request.who, id)
    workflow = known.workflow
    found = (await read_version(request.services, request.who, id, workflow.revision))[1]
    return EditorText(renamed(text_of(found), workflow.name), found.tests)


def renamed(text: str, name: str) -> str:
    """*text* with another name, as a copy: only the first line that says *name* is changed."""
    new = _("Copy of {name}").format(name=name)
    return re.sub(
        r"""^(\s*"?name"?\s*:\s*)(["']?)""" + re.escape(name) + r"(\2)(?=\s*(?:,|#|$))",
        lambda found: f"{found[1]}{found[2]}{new}{found[3]}",
        text,
        count=1,
        flags=re.MULTILINE,
    )


async def create(request: Request) -> Response:
    """Check the text of a new workflow, play its tests, or with `apply` store it."""
    require_editor(request)
    form = request.body
    assert isinstance(form, EditForm)
    draft = EditorText(unix(form.text), unix(form.tests))
    checked = await check_text(request, None, draft.text, draft.tests, play=bool(form.play))
    if checked.problems or not form.apply or checked.definition is None:
        return _form(request, None, draft, checked=checked)
    try:
        made = await create_workflow(
            request.services, request.who, checked.definition, draft.text, draft.tests,
            request.origin,
        )  # fmt: skip
    except InvalidDefinition as wrong:
        problems = located(request, draft.text, wrong.problems).problems
        return _form(request, None, draft, checked=CheckedText(problems))
    return see_other(request, f"/workflows/{made.id}")


async def save(request: Request) -> Response:
    """Check the text and show the change; with `apply`, store the text as the next version."""
    workflow, present = await _present(request)
    form = request.body
    assert isinstance(form, EditForm)
    draft = EditorText(unix(form.text), unix(form.tests), _number(form.version or "0"))
    if withheld(present.definition):
        return _form(request, workflow, EditorText("", "", workflow.revision), secret=True)
    changes = await _compared(request, text_of(present), draft.text)
    same_tests = draft.tests == present.tests
    if draft.version != workflow.revision:
        return await _conflict(request, workflow, draft)
    if form.play or not form.apply or (not changes and same_tests):
        return await _compare(request, workflow, draft, changes, play=bool(form.play))
    return await _apply(request, workflow, draft)


async def _compare(
    request: Request, workflow: Workflow, draft: EditorText, changes: Diff, *, play: bool
) -> Response:
    checked = await check_text(request, workflow, draft.text, draft.tests, play=play)
    dropped: Sequence[str] = ()
    if checked.definition is not None:
        dropped = await dropped_state(request.services, workflow.owner_id, checked.definition)
    if checked.problems:
        return _form(request, workflow, draft, checked=checked)
    return _form(request, workflow, draft, checked=checked, changes=changes, dropped=dropped)


async def _apply(request: Request, workflow: Workflow, draft: EditorText) -> Response:
    services, who = request.services, request.who
    try:
        definition = await read_text(request, workflow, draft.text)
        made = await edit_workflow(
            services, who, workflow.id, definition, draft.text, draft.version, request.origin,
            draft.tests,
        )  # fmt: skip
    except InvalidDefinition as wrong:
        problems = located(request, draft.text, wrong.problems).problems
        return _form(request, workflow, draft, checked=CheckedText(problems))
    except Conflict:
        now, _found = await _present(request)
        return await _conflict(request, now, draft)
    if made.revision == draft.version:
        checked = await check_text(request, workflow, draft.text, draft.tests, play=False)
        return _form(request, workflow, draft, checked=checked, same=True)
    return see_other(request, f"/workflows/{workflow.id}")


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise NotFound("Version")
    return int(text)


async def _compared(request: Request, old: str, new: str) -> Diff:
    """The changes from *old* to *new*, computed outside of the event loop: long texts take time."""
    return await request.services.offload(partial(diff, old, new))


async def _conflict(request: Request, workflow: Workflow, draft: EditorText) -> Response:
    """
    The form with both changes since the version on which the text is based; the text is kept.
    """
    services, who, now = request.services, request.who, workflow.revision
    newest = (await read_version(services, who, workflow.id, now))[1]
    try:
        began = (await read_version(services, who, workflow.id, draft.version))[1]
        theirs = await _compared(request, text_of(began), text_of(newest))
    except NotFound:
        theirs = []
    changes = await _compared(request, text_of(newest), draft.text)
    draft = EditorText(draft.text, draft.tests, now)
    checked = await check_text(request, workflow, draft.text, draft.tests, play=False)
    return _form(
        request, workflow, draft, checked=checked, changes=changes, theirs=theirs, status=409
    )


def _form(
    request: Request,
    workflow: Workflow | None,
    draft: EditorText,
    *,
    checked: CheckedText | None = None,
    status: int = 200,
    **more: Any,
) -> Response:
    checked = checked or CheckedText()
    config = request.context.config
    facts: dict[str, Any] = {
        "changes": None, "theirs": None, "secret": False, "same": False, "dropped": (),
        "fresh": False, "inputs": (),
    }  # fmt: skip
    return page(
        request,
        "edit.html",
        400 if checked.problems and not more.get("fresh") and status == 200 else status,
        workflow=workflow,
        draft=draft,
        checked=checked,
        tests=draft.tests,
        plays=config.play_scenarios is not None,
        sample=SAMPLE,
        once=request.services.tokens.text(22),
        **{**facts, **more},
    )
