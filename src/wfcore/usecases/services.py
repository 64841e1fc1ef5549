"""What use cases work with: the ports, and the few settings that are policy."""

from attrs import field, frozen

from wfcore.instants import DAY, MINUTE, SECOND, DurationMs
from wfcore.ports.counters import Counters
from wfcore.ports.dispatch import Wakeup
from wfcore.ports.files import ArtifactFiles
from wfcore.ports.store import Store
from wfcore.ports.system import Clock, Ids, Passwords, Templates, Tokens


@frozen
class Policy:
    """Settings that change what follows, not what is allowed."""

    lease_ms: DurationMs = DurationMs(15 * SECOND)
    grace_ms: DurationMs = DurationMs(5 * MINUTE)
    keep_executions_ms: DurationMs = DurationMs(30 * DAY)
    keep_audit_ms: DurationMs = DurationMs(90 * DAY)
    places: int = 8
    private_callbacks: bool = False


@frozen
class Services:
    """
    Everything a use case may touch. One per process; safe for many tasks at once.

    `signing_key` signs download links; processes on one store share it.
    """

    store: Store
    counters: Counters
    files: ArtifactFiles
    clock: Clock
    ids: Ids
    tokens: Tokens
    passwords: Passwords
    templates: Templates
    wakeup: Wakeup
    signing_key: bytes = field(repr=False)
    policy: Policy = Policy()
