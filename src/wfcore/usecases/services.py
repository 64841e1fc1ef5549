"""The ports of the use cases, and the few settings that are policy."""

from typing import TypedDict

from attrs import field, frozen

from wfcore.errors import InvalidInput
from wfcore.model.access import Tier
from wfcore.model.trigger import Missed
from wfcore.ports.counters import Counters
from wfcore.ports.files import ArtifactFiles
from wfcore.ports.hints import Wakeup
from wfcore.ports.runtime import NO_ENVIRONMENTS, Environments
from wfcore.ports.store import Store
from wfcore.ports.system import (
    Calendar,
    Clock,
    Ids,
    NoPasskeys,
    Offload,
    Passkeys,
    Passwords,
    Templates,
    Tokens,
    Tracing,
    inline,
)
from wfcore.rules.audit.refusals import RefusalTraffic
from wfcore.rules.auth.session import LinkTraffic, LoginTraffic
from wfcore.rules.limits import FACTS_AT_ONCE, FILES_BYTES
from wfcore.time import DAY, MINUTE, SECOND, DurationMs


@frozen
class Policy:
    """
    Settings that influence the behaviour of the service, not permissions.

    A schedule that fires later than `schedule_grace_ms` was missed; `missed` applies to schedules
    without a setting of their own.

    `poll_ms`: the time between two polls of the store by a worker; `reconcile_ms`: the time between
    two polls while a `DispatchQueue` is up. `heartbeat_ms`: the time between two extensions of a
    worker's leases of `lease_ms`, which must be longer. `facts_at_once`: the facts of one execution
    that are decided before other executions get their turn. EX-33. `sweep_ms`: the time between two
    sweeps. `one_for_all`: one person answers every approval, whatever its approvers.
    `default_plan`: the plan of accounts created without a plan. `operators`: emails in lower case
    of accounts that operate the server, beside accounts marked as operators. AC-7.
    `gate_approvers`: addresses, and domains written `@example.org`, that data and gates may name
    without an account. AP-41, GT-5. `mail_to`: addresses and domains, written in the same way, to
    which steps may send mail without an account. ML-2.

    `channels`: the channels that can send notices; if empty, only channels named by a definition
    get notices. `failure_channels`: the channels for every failure. NT-8. `language`: the language
    of notices to people without a setting. `notice_rows`: the number of rows of an approval that a
    notice shows. `files_bytes`: the most bytes of files that one step reads. FI-5.
    `public_url`: the URL of the server, from which passkeys take their host. SR-7.
    """

    lease_ms: DurationMs = DurationMs(15 * SECOND)
    grace_ms: DurationMs = DurationMs(5 * MINUTE)
    keep_executions_ms: DurationMs = DurationMs(30 * DAY)
    keep_audit_ms: DurationMs = DurationMs(90 * DAY)
    places: int = 8
    facts_at_once: int = FACTS_AT_ONCE
    private_callbacks: bool = False
    schedule_grace_ms: DurationMs = DurationMs(MINUTE)
    missed: Missed = Missed.SKIP
    poll_ms: DurationMs = DurationMs(250)
    heartbeat_ms: DurationMs = DurationMs(SECOND)
    reconcile_ms: DurationMs = DurationMs(20 * SECOND)
    sweep_ms: DurationMs = DurationMs(SECOND)
    operators: frozenset[str] = frozenset()
    default_plan: Tier = Tier.FREE
    one_for_all: bool = False
    gate_approvers: frozenset[str] = frozenset()
    mail_to: frozenset[str] = frozenset()
    channels: frozenset[str] = frozenset()
    failure_channels: tuple[str, ...] = ()
    language: str = "en"
    notice_rows: int = 0
    files_bytes: int = FILES_BYTES
    public_url: str | None = None

    def __attrs_post_init__(self) -> None:
        """
        Raises `InvalidInput` for a number under 1, and for a `heartbeat_ms` not below `lease_ms`:
        live work would count as lost.
        """
        for name in _AT_LEAST_ONE:
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise InvalidInput(name, "must be a number, at least 1")
        if self.heartbeat_ms >= self.lease_ms:
            fix = f"must be less than lease_ms, which is {self.lease_ms}"
            raise InvalidInput("heartbeat_ms", fix)

    @property
    def audit_ms(self) -> DurationMs:
        """The time for which audit entries are kept: at least as long as executions. AL-5."""
        return max(self.keep_audit_ms, self.keep_executions_ms)


_AT_LEAST_ONE = (
    "places",
    "facts_at_once",
    "lease_ms",
    "poll_ms",
    "heartbeat_ms",
    "reconcile_ms",
    "sweep_ms",
)


NO_PASSKEYS = NoPasskeys()


@frozen
class Services:
    """
    The ports and settings of all use cases. One per process and event loop; safe for many tasks at
    once.

    `signing_key` signs links until the store keeps a key; `signing_key` and `older_signing_keys`
    verify links. `calendar` None: definitions with schedules are refused. `offload`: a server runs
    decisions about many rows in a thread; without `offload` they run in place.
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
    passkeys: Passkeys = NO_PASSKEYS
    calendar: Calendar | None = None
    environments: Environments = NO_ENVIRONMENTS
    offload: Offload = inline
    login_traffic: LoginTraffic = field(factory=LoginTraffic, repr=False)
    link_traffic: LinkTraffic = field(factory=LinkTraffic, repr=False)
    refusal_traffic: RefusalTraffic = field(factory=RefusalTraffic, repr=False)
    older_signing_keys: tuple[bytes, ...] = field(default=(), repr=False)
    tracing: Tracing | None = None

    @property
    def given_keys(self) -> tuple[bytes, ...]:
        """The keys for links from this process's configuration, the signing key first."""
        return (self.signing_key, *self.older_signing_keys)


class ServiceParts(TypedDict, total=False):
    """The fields of `Services`, for callers that build `Services` with replaceable defaults."""

    store: Store
    counters: Counters
    files: ArtifactFiles
    clock: Clock
    ids: Ids
    tokens: Tokens
    passwords: Passwords
    templates: Templates
    wakeup: Wakeup
    signing_key: bytes
    older_signing_keys: tuple[bytes, ...]
    policy: Policy
    passkeys: Passkeys
    calendar: Calendar | None
    environments: Environments
    offload: Offload
    tracing: Tracing | None
