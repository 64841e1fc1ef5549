"""What use cases work with: the ports, and the few settings that are policy."""

from attrs import field, frozen

from wfcore.model.trigger import Missed
from wfcore.ports.counters import Counters
from wfcore.ports.dispatch import Wakeup
from wfcore.ports.environments import NO_ENVIRONMENTS, Environments
from wfcore.ports.files import ArtifactFiles
from wfcore.ports.store import Store
from wfcore.ports.system import Calendar, Clock, Ids, Offload, Passwords, Templates, Tokens, inline
from wfcore.rules.auth.session import LoginTraffic
from wfcore.time import DAY, MINUTE, SECOND, DurationMs


@frozen
class Policy:
    """
    Settings that influence what happens, not what is allowed.

    A schedule that fires later than `schedule_grace_ms` was missed; `missed` applies to schedules
    that do not say what follows then.
    """

    lease_ms: DurationMs = DurationMs(15 * SECOND)
    grace_ms: DurationMs = DurationMs(5 * MINUTE)
    keep_executions_ms: DurationMs = DurationMs(30 * DAY)
    keep_audit_ms: DurationMs = DurationMs(90 * DAY)
    places: int = 8
    private_callbacks: bool = False
    schedule_grace_ms: DurationMs = DurationMs(MINUTE)
    missed: Missed = Missed.SKIP

    @property
    def audit_ms(self) -> DurationMs:
        """How long audit entries are kept: at least as long as executions. AL-5."""
        return max(self.keep_audit_ms, self.keep_executions_ms)


@frozen
class Services:
    """
    Everything a use case may use. One per process; safe for many tasks at once.

    `signing_key` signs download links; processes on one store share it. `calendar` None:
    definitions with schedules are refused. `offload`: a server runs decisions about many rows in a
    thread; without it they run in place.
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
    calendar: Calendar | None = None
    environments: Environments = NO_ENVIRONMENTS
    offload: Offload = inline
    login_traffic: LoginTraffic = field(factory=LoginTraffic, repr=False)
