"""
`Settings`: one frozen record, from the environment and the command line.

Every setting has a default that suits one machine. Names of environment variables begin with
`WFCORE_`; the command line wins over the environment.
"""

import os
from collections import ChainMap
from collections.abc import Mapping
from difflib import get_close_matches
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from attrs import evolve, field, frozen

from adapters_http.config import Network
from adapters_http.transport.connections import host_name, is_host
from adapters_runtime.ai.providers import (
    Provider,
    forget_keys,
    is_of_a_provider,
    providers_from,
    settings_like,
)
from adapters_store import CACHE_BYTES, POSTGRES
from wfcore.errors import InvalidInput
from wfcore.model.access import Tier
from wfcore.model.trigger import Missed
from wfcore.rules.auth.passkeys import as_browsers_write
from wfcore.rules.definition.values import parse_duration
from wfcore.rules.ids import FIRST_CELL
from wfcore.rules.mailbox import ascii_domain, mailbox
from wfcore.rules.notices.facts import MAIL
from wfcore.time import MINUTE, DurationMs
from wfcore.usecases.services import Policy
from wfserver.settings.channels import (
    NoticeSettings,
    forget_channels,
    is_of_a_channel,
    notice_settings,
)
from wfserver.settings.file import FILE, WrongSetting, with_file
from wfserver.settings.names import SEAL_KEY, plan_of_new_accounts
from wfserver.settings.sharing import (
    DIRECT,
    ENGINE,
    SIGNING_KEY,
    Role,
    artifacts_url,
    cell,
    direct_downloads,
    direct_url,
    engine_url,
    is_shared,
    labels,
    process_count,
    role_of,
    signing_keys,
)
from wfserver.settings.sign_on import SECRET, SignOnSettings, sign_on_settings
from wfserver.settings.steps import StepSettings, size, step_settings, switch
from wfserver.settings.table import KNOWN

GATE_APPROVERS = "WFCORE_GATE_APPROVERS"
MAIL_TO = "WFCORE_MAIL_TO"
PRICES = "WFCORE_AI_PRICES"
DEFAULT_PLAN = "WFCORE_DEFAULT_PLAN"
STORE = "WFCORE_STORE"
TRACES = "WFCORE_TRACES"
_OURS = "WFCORE_"


class UnknownSetting(WrongSetting):
    """
    Raised for a variable in the environment that is no setting. A typo must not leave the default
    in force.
    """


def _require_known(environment: Mapping[str, str]) -> None:
    """Raises `UnknownSetting` for the first variable `WFCORE_…` that is no setting."""
    for name in sorted(filter(environment.get, environment)):
        known = name in KNOWN or is_of_a_provider(name) or is_of_a_channel(name)
        if name.startswith(_OURS) and not known:
            close = get_close_matches(name, [*KNOWN, *settings_like(name)], n=1)
            meant = f"; did you mean {close[0]}?" if close else ""
            raise UnknownSetting(name, f"there is no such setting{meant}")


@frozen
class Settings:
    """
    The settings of the server and the commands. Lengths of time are milliseconds.

    Storage: `data` is the data folder. `store` None: SQLite in the data folder. `direct`: the URL
    of a PostgreSQL store that bypasses a pooler, for listening; None: `store`. `engine`: the URL of
    the queue that dispatches executions, beside a shared store. `cache`: the bytes of decoded
    records that each process may keep. `seal_key`: the keys that seal records; None:
    `seal_key_file` holds the keys, by default in the data folder. `signing_keys`: names and keys;
    the first one signs links, all of them verify links; empty: the key in the data folder.
    `artifacts`: the URL of a folder or a bucket of artifacts; None: the data folder.
    `direct_downloads`: whether links lead to the bucket itself.

    HTTP: `connections`, `connections_each`: the most connections in all and from one address; None:
    as the limit on open files allows. `trusted_proxies`: addresses whose forwarding headers are
    believed. `allowed_hosts`: the host names that requests may carry, by default the public URL's;
    None: any. `cors_origins`: origins whose pages may call the API. `console`: whether there are
    pages for people. `agents`: whether agents are offered workflows at `/mcp`. `sign_on`: an
    identity provider for people. `default_plan`: the plan that was set for new accounts.

    Work: `role`: the part of the work that this server does. `processes`: the servers of one
    command. `labels`: the labels of this server that steps may require. `cell`: the cell in the ids
    made here. `drain_ms`: how long running steps may go on after SIGTERM. `stalled_ms`: how long
    due work may stay untouched, or one round of a loop may take, before the server is not ready.
    `runner`: the installed package that runs code steps; None: the bundled runner. `packages`: the
    folder of steps' packages, by default in the data folder. `build_packages`: whether packages
    without a wheel may be built. `prune_packages`: whether unused packages are removed.
    `providers`: the providers of models, by name. `prices`: a file with prices of models.
    `ai_calls`: the most calls of models at once. `notices`: the channels of notices.

    `file`: the file that the settings were read from. `traces`: whether spans go to a collector.
    """

    data: Path
    store: str | None = field(default=None, repr=False)
    direct: str | None = field(default=None, repr=False)
    engine: str | None = field(default=None, repr=False)
    host: str = "127.0.0.1"
    port: int = 8000
    public_url: str | None = None
    drain_ms: DurationMs = DurationMs(25_000)
    stalled_ms: DurationMs = DurationMs(MINUTE)
    policy: Policy = Policy()
    providers: Mapping[str, Provider] = field(factory=dict)
    prices: Path | None = None
    ai_calls: int = 32
    connections: int | None = None
    connections_each: int | None = None
    trusted_proxies: tuple[Network, ...] = ()
    allowed_hosts: frozenset[str] | None = None
    steps: StepSettings = StepSettings()
    processes: int = 1
    cache: int = CACHE_BYTES
    packages: Path | None = None
    seal_key: str | None = field(default=None, repr=False)
    seal_key_file: Path | None = None
    build_packages: bool = False
    prune_packages: bool = True
    console: bool = True
    agents: bool = False
    default_plan: Tier | None = None
    sign_on: SignOnSettings | None = None
    runner: str | None = None
    notices: NoticeSettings = NoticeSettings()
    artifacts: str | None = None
    direct_downloads: bool = False
    signing_keys: tuple[tuple[str, bytes], ...] = field(default=(), repr=False)
    role: Role = Role.ALL
    cell: str = FIRST_CELL
    labels: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    log: str = "info"
    log_format: str | None = None
    traces: bool = False
    file: Path | None = None

    @property
    def shared(self) -> bool:
        """Whether servers on other machines may work on the store."""
        return (self.store or "").startswith(POSTGRES)

    @property
    def artifacts_folder(self) -> Path | None:
        """The folder of artifacts; None: a bucket keeps artifacts."""
        if self.artifacts is None:
            return self.data / "artifacts"
        file = self.artifacts.startswith("file://")
        return Path(self.artifacts.removeprefix("file://")) if file else None

    @property
    def mails_links(self) -> bool:
        """Whether links to sign in can be mailed: that takes mail and a public URL."""
        return MAIL in self.policy.channels and self.public_url is not None

    @property
    def packages_folder(self) -> Path:
        """The folder of steps' packages."""
        return self.packages or self.data / "packages"


SHARED_POLL_MS, SHARED_SWEEP_MS = DurationMs(2_000), DurationMs(7_000)
"""
How often a server polls a shared store, in case a hint was lost; each poll is a transaction.
"""


def settings_from(
    environment: Mapping[str, str] | None = None,
    *,
    data: str | None = None,
    store: str | None = None,
    host: str | None = None,
    port: int | None = None,
    public_url: str | None = None,
    role: str | None = None,
    processes: int | None = None,
) -> Settings:
    """
    The settings of the environment and the arguments.

    Raises `InvalidInput` with the variable that cannot be read, and `UnknownSetting`.
    """
    env = _environment(environment)
    notices = notice_settings(env)
    url = store or env.get(STORE) or None
    shared = is_shared("--store", url)
    policy = _policy(env, shared, notices, _folder(env, data))
    public = _url(public_url or env.get("WFCORE_PUBLIC_URL") or None)
    return Settings(
        data=_folder(env, data),
        default_plan=_plan(env),
        store=url,
        direct=direct_url(env, shared),
        engine=engine_url(env, shared),
        host=host or env.get("WFCORE_HOST") or "127.0.0.1",
        port=_port(env, port),
        public_url=public,
        drain_ms=_duration(env, "WFCORE_DRAIN", DurationMs(25_000), zero=True),
        stalled_ms=_duration(env, "WFCORE_STALLED_AFTER", DurationMs(MINUTE)),
        policy=evolve(policy, public_url=public),
        providers=providers_from(env),
        prices=_path(env, PRICES),
        ai_calls=_count(env, "WFCORE_AI_CONCURRENCY", 32),
        connections=_count_or_none(env, "WFCORE_CONNECTIONS"),
        connections_each=_count_or_none(env, "WFCORE_CONNECTIONS_PER_ADDRESS"),
        trusted_proxies=_networks(env, "WFCORE_TRUSTED_PROXIES"),
        allowed_hosts=_hosts(env, "WFCORE_ALLOWED_HOSTS", public),
        steps=step_settings(env),
        processes=process_count(env, processes, policy.places, url),
        cache=size(env, "WFCORE_CACHE", CACHE_BYTES, 1 << 20),
        build_packages=switch(env, "WFCORE_BUILD_PACKAGES", False),
        seal_key=env.get(SEAL_KEY) or None,
        runner=env.get("WFCORE_RUNNER") or None,
        artifacts=(artifacts := artifacts_url(env, url, shared)),
        direct_downloads=direct_downloads(env, artifacts),
        signing_keys=signing_keys(env),
        role=role_of(env, role, shared),
        cell=cell(env),
        cors_origins=_origins(env, "WFCORE_CORS_ORIGINS"),
        log=env.get("WFCORE_LOG") or "info",
        log_format=env.get("WFCORE_LOG_FORMAT") or None,
        traces=switch(env, TRACES, False),
        file=Path(file) if (file := env.get(FILE)) else None,
        labels=labels(env),
        notices=notices,
        seal_key_file=_path(env, "WFCORE_SEAL_KEY_FILE"),
        console=switch(env, "WFCORE_CONSOLE", True),
        agents=switch(env, "WFCORE_MCP", False),
        sign_on=sign_on_settings(env),
        packages=_path(env, "WFCORE_PACKAGES"),
    )


def _environment(environment: Mapping[str, str] | None) -> Mapping[str, str]:
    """
    *environment* (default: the process's own) over the file of settings, with known names only.
    """
    env = with_file(os.environ if environment is None else environment)
    _require_known(env)
    return env


def _folder(env: Mapping[str, str], given: str | None) -> Path:
    return Path(given or env.get("WFCORE_DATA") or "wfcore-data").absolute()


def _path(env: Mapping[str, str], name: str) -> Path | None:
    return Path(text).absolute() if (text := env.get(name)) else None


def _port(env: Mapping[str, str], given: int | None) -> int:
    """The port *given*, or else of the environment, which is checked in both cases."""
    own = _count(env, "WFCORE_PORT", 8000)
    return own if given is None else given


def _policy(env: Mapping[str, str], shared: bool, notices: NoticeSettings, folder: Path) -> Policy:
    """
    The policy of the environment. *shared*: several machines share the store. *folder*: the data
    folder.
    """
    default = Policy()
    lease_ms = _duration(env, "WFCORE_LEASE", default.lease_ms)
    return Policy(
        lease_ms=lease_ms,
        poll_ms=SHARED_POLL_MS if shared else default.poll_ms,
        sweep_ms=SHARED_SWEEP_MS if shared else default.sweep_ms,
        heartbeat_ms=DurationMs(min(default.heartbeat_ms, max(lease_ms // 3, 1))),
        grace_ms=_duration(env, "WFCORE_INTERRUPTED_GRACE", default.grace_ms),
        keep_executions_ms=_duration(env, "WFCORE_KEEP_EXECUTIONS", default.keep_executions_ms),
        keep_audit_ms=_duration(env, "WFCORE_KEEP_AUDIT", default.keep_audit_ms),
        places=_count(env, "WFCORE_CONCURRENCY", default.places),
        private_callbacks=switch(env, "WFCORE_ALLOW_PRIVATE_CALLBACKS", False),
        schedule_grace_ms=_duration(env, "WFCORE_SCHEDULE_GRACE", default.schedule_grace_ms),
        missed=_missed(env, "WFCORE_MISSED_RUNS", default.missed),
        operators=_emails(env, "WFCORE_OPERATORS"),
        default_plan=_plan(env) or plan_of_new_accounts(folder),
        gate_approvers=_outsiders(env, GATE_APPROVERS),
        mail_to=_outsiders(env, MAIL_TO),
        channels=notices.channels,
        failure_channels=notices.failure_channels,
        language=notices.language,
        notice_rows=notices.rows,
        files_bytes=size(env, "WFCORE_FILES_BYTES", default.files_bytes, 1 << 20),
    )


def take_environment(file: str | None = None) -> ChainMap[str, str]:
    """
    The environment over the file of settings: *file*, or the file that the environment names. Keys
    are removed from the process's own environment, so that no child process inherits them. AI-6.

    Raises `InvalidInput` for a file that cannot be read.
    """
    taken = dict(os.environ)
    forget_keys(os.environ)
    for name in (SEAL_KEY, SECRET, STORE, DIRECT, ENGINE, SIGNING_KEY, f"{_OURS}KEY"):
        os.environ.pop(name, None)
    forget_channels(os.environ)
    return with_file(taken, file)


def _duration(
    env: Mapping[str, str], name: str, default: DurationMs, *, zero: bool = False
) -> DurationMs:
    text = env.get(name)
    if not text:
        return default
    try:
        return parse_duration(text, zero=zero)
    except ValueError as error:
        raise InvalidInput(name, str(error)) from None


def _count(env: Mapping[str, str], name: str, default: int) -> int:
    text = env.get(name)
    if not text:
        return default
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0
    if not 1 <= number <= 65_535:
        raise InvalidInput(name, "must be a whole number from 1 to 65535")
    return number


def _count_or_none(env: Mapping[str, str], name: str) -> int | None:
    return _count(env, name, 1) if env.get(name) else None


def _missed(env: Mapping[str, str], name: str, default: Missed) -> Missed:
    text = env.get(name)
    if not text:
        return default
    try:
        return Missed(text)
    except ValueError:
        raise InvalidInput(name, f"must be one of {', '.join(Missed)}") from None


def _plan(env: Mapping[str, str]) -> Tier | None:
    try:
        return Tier(text) if (text := env.get(DEFAULT_PLAN)) else None
    except ValueError:
        raise InvalidInput(DEFAULT_PLAN, f"must be one of {', '.join(Tier)}") from None


def _emails(env: Mapping[str, str], name: str) -> frozenset[str]:
    """Normalized emails, from a list with commas or spaces."""
    found = set()
    for one in env.get(name, "").replace(",", " ").split():
        try:
            found.add(mailbox(one))
        except ValueError:
            fix = f"{one} is no email; write ann@example.org,bob@example.org"
            raise InvalidInput(name, fix) from None
    return frozenset(found)


def _outsiders(env: Mapping[str, str], name: str) -> frozenset[str]:
    """Emails and domains such as `@example.org`, from a list with commas or spaces."""
    found = set()
    for one in env.get(name, "").replace(",", " ").split():
        try:
            found.add(f"@{ascii_domain(one[1:])}" if one.startswith("@") else mailbox(one))
        except ValueError:
            fix = f"{one} is no email and no domain; write ann@example.org,@example.com"
            raise InvalidInput(name, fix) from None
    return frozenset(found)


def _networks(env: Mapping[str, str], name: str) -> tuple[Network, ...]:
    """Addresses and networks, from a list with commas or spaces."""
    found = []
    for part in env.get(name, "").replace(",", " ").split():
        try:
            found.append(ip_network(part))
        except ValueError:
            fix = f"{part} is no address or network; write 127.0.0.1, 10.0.0.0/8 or ::1"
            raise InvalidInput(name, fix) from None
    return tuple(found)


def _origins(env: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Origins, from a list with commas or spaces; `*`: any."""
    found = tuple(env.get(name, "").replace(",", " ").split())
    for one in found:
        scheme, host = parts_of(one)
        if one != "*" and (not host or one != f"{scheme}://{host}".lower()):
            fix = f"{one} is no origin; write https://app.example.org, without a path"
            raise InvalidInput(name, fix)
    return found


def parts_of(url: str) -> tuple[str, str]:
    """Scheme and host (with user and port) of *url*; both empty if *url* is no URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", ""
    return parts.scheme, parts.netloc


_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""The host names in requests of commands on this machine."""


def _hosts(env: Mapping[str, str], name: str, public: str | None) -> frozenset[str] | None:
    """
    Host names, from a list with commas or spaces, and the public host name. None, or `*`: any.
    """
    given = env.get(name, "").replace(",", " ").lower().split()
    if given == ["*"] or (not given and public is None):
        return None
    for one in given:
        if not is_host(one.encode(errors="replace")) or host_name(one) != one:
            raise InvalidInput(name, f"{one} is no host name; write example.org, without port")
    of_url = [host_name(parts_of(public)[1].rpartition("@")[2])] if public else []
    return frozenset((*given, *of_url, *_LOOPBACK))


def _url(text: str | None) -> str | None:
    if text is not None and not text.startswith(("http://", "https://")):
        raise InvalidInput("public-url", "must begin with http:// or https://")
    if text is not None and not parts_of(text)[1]:
        raise InvalidInput("public-url", "must name a host, as https://wf.example.org does")
    return _as_browsers_write(text.rstrip("/")) if text else None


def _as_browsers_write(url: str) -> str:
    """The URL with its host as it is in requests: other scripts in A-labels. SR-7."""
    parts = urlsplit(url)
    named = parts.hostname or ""
    try:
        host, _ = as_browsers_write(named), parts.port
    except ValueError as refused:
        raise InvalidInput("public-url", str(refused)) from None
    if named.isascii():
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.lower().replace(named, host)))
