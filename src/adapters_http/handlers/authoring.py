"""Workflows of their authors, for programs with a session. DF-21, DF-22, DF-23, AC-14."""

import asyncio
from collections.abc import Sequence

from adapters_http.params import page
from adapters_http.request import Request
from wfcore.errors import InvalidInput, NotFound
from wfcore.model.workflow import Definition
from wfcore.rules.limits import WORKFLOW_PAGE
from wfcore.usecases.workflows import authoring, browsing, versions, workflows
from wfcore.wire.common import DoneView
from wfcore.wire.operating import (
    DifferenceView,
    ShareList,
    ShareView,
    VersionEntryView,
    VersionPage,
    VersionView,
    version_view,
)

MOST_DIGITS = 10


async def create(request: Request) -> VersionView:
    """A new workflow of the caller, in its first version."""
    body = request.body
    definition = await read_text(request, body.definition)
    owner_id = request.who.account.id
    warnings = await workflows.warnings_of(request.services, owner_id, definition)
    made = await authoring.create_workflow(
        request.services, request.who, definition, body.definition, body.tests or "", request.origin
    )
    return await _version(request, made.id, made.revision, warnings)


async def change(request: Request) -> VersionView:
    """Another text as the next version; the present one, where it says the same."""
    body, id = request.body, request.params["id"]
    definition = await read_text(request, body.definition)
    warnings = await _warnings(request, id, definition)
    made = await workflows.edit_workflow(
        request.services,
        request.who,
        id,
        definition,
        body.definition,
        body.version,
        request.origin,
        body.tests,
    )
    return await _version(request, id, made.revision, warnings)


async def _warnings(request: Request, id: str, definition: Definition) -> Sequence[str]:
    """The warnings for the author of the next version. SV-5, AP-49."""
    found = await workflows.read_workflow(request.services, request.who, id)
    return await workflows.warnings_of(request.services, found.workflow.owner_id, definition)


async def read_text(request: Request, text: str) -> Definition:
    """
    The definition in *text*. Raises `InvalidDefinition`; `NotFound` where no workflow can be
    changed.
    """
    config = request.context.config
    if config.read_definition is None or not config.console_edits:
        raise NotFound("Page")
    return await asyncio.to_thread(config.read_definition, text.encode("utf-8", "replace"))


async def delete(request: Request) -> DoneView:
    """Delete a workflow of the caller. Its webhooks are disabled, its executions go on."""
    require_editor(request)
    await workflows.delete_workflow(
        request.services, request.who, request.params["id"], request.origin
    )
    return DoneView(True)


def require_editor(request: Request) -> None:
    """Raises `NotFound` where no workflow can be changed by session."""
    if not request.context.config.console_edits:
        raise NotFound("Page")


async def list_versions(request: Request) -> VersionPage:
    """The versions, newest first: who applied each, when, and how many lines it changed."""
    wanted, id = page(request, WORKFLOW_PAGE), request.params["id"]
    found = await authoring.list_changes(request.services, request.who, id, wanted)
    rows = [
        VersionEntryView(one.number, one.applied_at, one.applied_by or None, one.added, one.removed)
        for one in found.rows
    ]
    return VersionPage(items=rows, total=found.total, page=found.page, size=found.size)


async def read_version(request: Request) -> VersionView:
    """The text of one version."""
    return await _version(request, request.params["id"], number_of(request.params["number"]))


async def _version(
    request: Request, id: str, number: int, warnings: Sequence[str] = ()
) -> VersionView:
    _, found, _ = await browsing.read_version(request.services, request.who, id, number)
    return version_view(found, warnings)


async def compare(request: Request) -> DifferenceView:
    """The difference of a version and another; without `from`, the version before it."""
    to, since = number_of(request.params["number"]), request.query("from")
    id, old = request.params["id"], number_of(since, "from") if since else to - 1
    _, before, after = await authoring.compare_versions(request.services, request.who, id, old, to)
    text = await request.services.offload(lambda: versions.difference(before, after))
    return DifferenceView(id, old, to, text)


def number_of(text: str, field: str | None = None) -> int:
    """
    The number of a version in *text*. Raises `NotFound`; `InvalidInput` if a query *field* has it.
    """
    if text.isascii() and text.isdigit() and len(text) < MOST_DIGITS:
        return int(text)
    if field:
        raise InvalidInput(field, "must be the number of a version")
    raise NotFound("Version")


async def restore(request: Request) -> VersionView:
    """What this version said, with its tests, as the next version."""
    require_editor(request)
    id, to = request.params["id"], number_of(request.params["number"])
    _, wanted, _ = await browsing.read_version(request.services, request.who, id, to)
    warnings = await _warnings(request, id, wanted.definition)
    made = await authoring.restore_version(
        request.services, request.who, id, to, request.body.version, request.origin
    )
    return await _version(request, id, made.revision, warnings)


async def list_shares(request: Request) -> ShareList:
    """The accounts with which the caller shares a workflow."""
    found = await authoring.list_shares(request.services, request.who, request.params["id"])
    return ShareList([ShareView(one.account_id, email, one.permission) for one, email in found])


async def share(request: Request) -> ShareView:
    """Give an account, by id or email, a permission on a workflow of the caller."""
    id, account, permission = (
        request.params["id"],
        request.params["account"],
        request.body.permission,
    )
    other = await authoring.share_own(
        request.services, request.who, id, account, permission, request.origin
    )
    return ShareView(other.id, other.email, permission)


async def unshare(request: Request) -> DoneView:
    """Take an account's permission away; its webhooks on the workflow are disabled."""
    id, account = request.params["id"], request.params["account"]
    await authoring.share_own(request.services, request.who, id, account, None, request.origin)
    return DoneView(True)
