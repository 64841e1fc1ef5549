"""Files that steps left behind. Contract §6."""

from attrs import frozen

from wfcore.time import EpochMs


@frozen
class RefusedFile:
    """Something that a step left and that is no artifact; the name is a label only."""

    name: str
    reason: str


@frozen
class Artifact:
    """A stored file. `name` is a label only; `storage_key` finds the content."""

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
