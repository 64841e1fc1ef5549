"""Files that steps produced. Contract §6."""

from attrs import frozen

from wfcore.time import EpochMs


@frozen
class RefusedFile:
    """Something a step left that does not qualify as an artifact; the name is only a label."""

    name: str
    reason: str


@frozen
class Artifact:
    """A stored file. `name` is only a label; `storage_key` locates the content."""

    id: str
    execution_id: str
    step_name: str
    name: str
    storage_key: str
    size: int
    content_type: str
    sha256: str
    previewable: bool
    created_at: EpochMs
    version: int = 0
