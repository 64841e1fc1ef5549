"""Artifacts: metadata by API, content by link. Spec: artifacts; contract §6. AR-1, AR-2."""

from functools import partial

from starlette.responses import Response

from adapters_http.downloads import download_response
from adapters_http.request import Ask
from wfcore.errors import AuthReason, Unauthenticated
from wfcore.model.artifact import Artifact
from wfcore.time import EpochMs
from wfcore.usecases import artifacts
from wfcore.usecases.artifacts import Link
from wfcore.usecases.audit.auditing import note_denial
from wfcore.wire.shapes import ArtifactList, ArtifactView
from wfcore.wire.views import artifact_view


async def list_all(ask: Ask) -> ArtifactList:
    """The artifacts of an execution, newest first."""
    found = await artifacts.list_artifacts(ask.services, ask.who, ask.params["id"])
    return ArtifactList([_view(ask, one) for one in found], len(found))


async def read(ask: Ask) -> ArtifactView:
    """One artifact's metadata."""
    id, artifact_id = ask.params["id"], ask.params["aid"]
    return _view(ask, await artifacts.read_artifact(ask.services, ask.who, id, artifact_id))


def _view(ask: Ask, artifact: Artifact) -> ArtifactView:
    link = artifacts.link(ask.services, artifact)
    execution = f"{ask.base_path}/api/executions/{artifact.execution_id}"
    path = f"{execution}/artifacts/{artifact.id}/download"
    url = f"{path}?expires={link.expires}&signature={link.signature}"
    return artifact_view(artifact, url)


async def download(ask: Ask) -> Response:
    """The content, by a signed link or by the credentials that the door has checked."""
    artifact = await _wanted(ask)
    return await download_response(
        artifact,
        ask.header(b"range"),
        ask.header(b"if-range"),
        partial(ask.services.files.read, artifact.storage_key),
        head=ask.method == "HEAD",
    )


async def _wanted(ask: Ask) -> Artifact:
    id, artifact_id, signature = ask.params["id"], ask.params["aid"], ask.query("signature")
    if signature is None:
        return await artifacts.read_artifact(ask.services, ask.who, id, artifact_id)
    try:
        link = Link(_expires(ask.query("expires")), signature)
        return await artifacts.linked_artifact(ask.services, id, artifact_id, link)
    except Unauthenticated as refusal:
        await note_denial(ask.services, "artifact.download", refusal, ask.origin, artifact_id)
        raise


def _expires(text: str | None) -> EpochMs:
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise Unauthenticated(AuthReason.SIGNATURE_MISMATCH)
    return EpochMs(int(text))
