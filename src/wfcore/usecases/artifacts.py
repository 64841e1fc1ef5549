"""Artifacts: metadata, and the content by link or by key. Spec: artifacts."""

from collections.abc import Sequence

from attrs import frozen

from wfcore.errors import AuthReason, NotFound, Unauthenticated
from wfcore.model.access import OPERATOR, Principal, Share, Unrestricted
from wfcore.model.event import EventKind
from wfcore.model.execution import Artifact, Execution
from wfcore.model.json import JsonObject
from wfcore.ports.runtime import LeftFile
from wfcore.ports.store import View
from wfcore.rules.auth.access import sees_approval
from wfcore.rules.auth.signed_links import Keyring, download_fits, sign_download
from wfcore.rules.limits import DOWNLOAD_LINK
from wfcore.time import EpochMs, later
from wfcore.usecases.services import Services
from wfcore.usecases.signing import keys_in
from wfcore.usecases.unit_of_work import execution_for


@frozen
class Link:
    """A signature that opens one download until `expires`."""

    expires: EpochMs
    signature: str


async def list_artifacts(
    services: Services, who: Principal | Unrestricted, execution_id: str
) -> Sequence[Artifact]:
    """The artifacts of an execution, newest first. Raises `NotFound`."""
    async with services.store.view() as view:
        await execution_for(view, who, execution_id)
        return await view.artifacts.of_execution(execution_id)


async def read_artifact(
    services: Services, who: Principal | Unrestricted, execution_id: str, artifact_id: str
) -> Artifact:
    """
    One artifact of an execution, also for people who see an approval with the artifact attached;
    the approval shows no other part of the execution. AP-29. Raises `NotFound`.
    """
    async with services.store.view() as view:
        if who is OPERATOR or not await _is_attached(view, who, execution_id, artifact_id):
            await execution_for(view, who, execution_id)
        return _of(await view.get(Artifact, artifact_id), execution_id)


async def _is_attached(view: View, who: Principal, execution_id: str, artifact_id: str) -> bool:
    """Whether *who* sees an approval of the execution with the artifact attached."""
    for one in await view.approvals.of_execution(execution_id):
        if any(file.artifact_id == artifact_id for file in one.attachments):
            share = await view.get(Share, one.workflow_id, who.account.id)
            if sees_approval(one, who, share):
                return True
    return False


def link(services: Services, keys: Keyring, artifact_id: str) -> Link:
    """A link that is valid for 15 minutes. *keys*: see `signing_keys`. AR-2."""
    expires = later(services.clock.now(), DOWNLOAD_LINK)
    return Link(expires, keys.signed(lambda key: sign_download(key, artifact_id, expires)))


def download_path(execution_id: str, artifact_id: str, signed: Link) -> str:
    """The path, below the server's URL, at which *signed* opens the content of an artifact."""
    path = f"/api/executions/{execution_id}/artifacts/{artifact_id}/download"
    return f"{path}?expires={signed.expires}&signature={signed.signature}"


async def linked_artifact(
    services: Services, execution_id: str, artifact_id: str, given: Link
) -> Artifact:
    """
    The artifact of a signed link. AR-2.

    Raises `Unauthenticated` (the link is wrong or expired), `NotFound`.
    """
    now = services.clock.now()
    async with services.store.view() as view:
        tried = (await keys_in(view, services)).tried(given.signature)
        if not any(
            download_fits(key, artifact_id, given.expires, made, now) for key, made in tried
        ):
            raise Unauthenticated(AuthReason.SIGNATURE_MISMATCH)
        return _of(await view.get(Artifact, artifact_id), execution_id)


def _of(artifact: Artifact | None, execution_id: str) -> Artifact:
    if artifact is None or artifact.execution_id != execution_id:
        raise NotFound("Artifact")
    return artifact


def artifact_of(run: Execution, step_name: str, file: LeftFile, now: EpochMs) -> Artifact:
    """The record of a file that a step left, in its present attempt."""
    return Artifact(
        id=file.id,
        execution_id=run.id,
        step_name=step_name,
        name=file.name,
        storage_key=file.storage_key,
        size=file.size,
        content_type=file.content_type,
        sha256=file.sha256,
        previewable=file.previewable,
        created_at=now,
        attempt=run.step_results[step_name].attempts,
    )


def created(step_name: str, file: LeftFile) -> tuple[EventKind, JsonObject]:
    """The event data for the artifact *file*."""
    about: JsonObject = {
        "step": step_name,
        "artifactId": file.id,
        "name": file.name,
        "size": file.size,
    }
    return EventKind.ARTIFACT_CREATED, about
