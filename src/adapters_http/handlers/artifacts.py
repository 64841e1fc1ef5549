"""Artifacts: metadata by API, content by link. Spec: artifacts. AR-1, AR-2."""

from functools import partial

from starlette.responses import Response

from adapters_http.downloads import download_response, is_displayed, redirect_to
from adapters_http.request import Request
from wfcore.errors import AuthReason, Unauthenticated
from wfcore.model.approval import Attachment
from wfcore.model.execution import Artifact
from wfcore.rules.auth.signed_links import Keyring
from wfcore.time import EpochMs
from wfcore.usecases import artifacts
from wfcore.usecases.artifacts import Link
from wfcore.usecases.audit.auditing import note_denial
from wfcore.usecases.signing import signing_keys
from wfcore.wire.events import ArtifactList, ArtifactView, artifact_view


async def list_all(request: Request) -> ArtifactList:
    """The artifacts of an execution, newest first."""
    found = await artifacts.list_artifacts(request.services, request.who, request.params["id"])
    keys = await signing_keys(request.services)
    return ArtifactList([_view(request, keys, one) for one in found], len(found))


async def read(request: Request) -> ArtifactView:
    """One artifact's metadata."""
    id, artifact_id = request.params["id"], request.params["aid"]
    found = await artifacts.read_artifact(request.services, request.who, id, artifact_id)
    return _view(request, await signing_keys(request.services), found)


def _view(request: Request, keys: Keyring, artifact: Artifact) -> ArtifactView:
    return artifact_view(artifact, _url(request, keys, artifact.execution_id, artifact.id))


def attachment_url(request: Request, keys: Keyring, one: Attachment) -> str:
    """The URL of an attachment of an approval that the caller may read. AP-29."""
    return _url(request, keys, one.execution_id, one.artifact_id)


def _url(request: Request, keys: Keyring, execution_id: str, artifact_id: str) -> str:
    link = artifacts.link(request.services, keys, artifact_id)
    return f"{request.base_path}{artifacts.download_path(execution_id, artifact_id, link)}"


async def download(request: Request) -> Response:
    """
    The content, by a signed link or by the credentials that `auth` has checked. A link may lead to
    the bucket, but not for whoever sends a key: many clients would pass it on.
    """
    artifact = await _wanted(request)
    sends_key = request.header(b"authorization") or request.header(b"x-api-key")
    if request.method == "GET" and request.query("signature") and not sends_key:
        url = await request.services.files.direct_url(artifact.storage_key)
        if url is not None and not is_displayed(artifact):
            return redirect_to(url)
    return await download_response(
        artifact,
        request.header(b"range"),
        request.header(b"if-range"),
        partial(request.services.files.read, artifact.storage_key),
        head=request.method == "HEAD",
    )


async def _wanted(request: Request) -> Artifact:
    id, artifact_id, signature = (
        request.params["id"],
        request.params["aid"],
        request.query("signature"),
    )
    if signature is None:
        return await artifacts.read_artifact(request.services, request.who, id, artifact_id)
    try:
        link = Link(_expires(request.query("expires")), signature)
        return await artifacts.linked_artifact(request.services, id, artifact_id, link)
    except Unauthenticated as refusal:
        await note_denial(
            request.services, "artifact.download", refusal, request.origin, artifact_id
        )
        raise


def _expires(text: str | None) -> EpochMs:
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise Unauthenticated(AuthReason.SIGNATURE_MISMATCH)
    return EpochMs(int(text))
