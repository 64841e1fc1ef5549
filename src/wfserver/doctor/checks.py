"""The checks of `wfcore doctor`: of this machine, the settings, and the store."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from typing import Any, Protocol, TypeVar, cast

from attrs import define, field

from adapters_runtime.ai import CURE, is_available
from adapters_runtime.ai.providers import Provider, setting_of
from adapters_runtime.engine.dispatching import describe_dispatch
from adapters_runtime.system import StoreTime
from adapters_store import POSTGRES
from adapters_store.sql.moving import Elsewhere
from adapters_store.sql.schema import OlderSchema, Schema, Unmade
from adapters_store.sqlite.migrate import migrations
from wfcore.errors import InvalidInput, StoreUnavailable, WfError
from wfcore.model.access import OPERATOR
from wfcore.model.notice import NoticeStatus
from wfcore.model.page import PageRequest
from wfcore.model.webhook import AuthMode, Webhook, WebhookStatus
from wfcore.ports.system import Clock
from wfcore.rules.auth.passkeys import lost_passkeys
from wfcore.time import SECOND
from wfcore.usecases.accounts.passkeys import all_passkeys, party_of
from wfcore.usecases.notices.managing import list_notices
from wfcore.usecases.services import Services
from wfcore.usecases.upkeep.orphans import compare_files, delete_strange
from wfcore.usecases.webhooks.webhooks import list_webhooks
from wfserver.compose import System
from wfserver.doctor.machine import CheckResult, backups, disk, folder, keys, packages, program
from wfserver.doctor.providers import described, probe, wanted
from wfserver.errors import CommandFailed
from wfserver.failures import explain
from wfserver.notices import try_channel
from wfserver.settings.channels import SMTP_URL, setting_of_channel
from wfserver.settings.record import Settings
from wfserver.settings.sharing import ENGINE, SIGNING_KEY

_PAGE = 200
_FEW = 3
_PROBE = "doctor"

T = TypeVar("T")


class WorkIn(Protocol):
    """Runs a job with the open system: `Invocation.work_in`."""

    def __call__(
        self,
        job: Callable[[System], Awaitable[T]],
        *,
        fresh: bool = False,
        schema: Schema | None = None,
    ) -> T: ...


def checks(
    settings: Settings,
    work_in: WorkIn,
    require_servable: Callable[[Settings], None],
    *,
    online: bool = False,
) -> Sequence[CheckResult]:
    """
    All checks except the checks of languages and isolation. *require_servable* raises what `serve`
    would refuse of the settings; *online*: providers of models are called, too.
    """
    found = [program(), folder(settings.data), disk(settings.data)]
    stored = _store(settings, work_in) if found[1].ok else _Stored()
    found += stored.checks
    if not found[1].essential:
        found += [backups(settings), keys(settings), *_signing(settings), packages(settings)]
    if settings.engine is not None:
        found.append(_dispatch(settings.engine))
    if (refused := _serving(settings, require_servable)) is not None:
        found.append(refused)
    found.append(_providers(stored.wanted, settings.providers))
    found.append(_notices(settings, stored.given_up))
    if outsiders := settings.policy.gate_approvers:
        what = f"besides accounts, gates and data may name {', '.join(sorted(outsiders))}"
        found.append(CheckResult("approvers", True, what))
    return [*found, *(_probed(one) for one in settings.providers.values() if online)]


def _serving(
    settings: Settings, require_servable: Callable[[Settings], None]
) -> CheckResult | None:
    """The check that fails for what `serve` would refuse; None: `serve` would refuse nothing."""
    try:
        require_servable(settings)
    except (CommandFailed, WfError, OSError) as error:
        return CheckResult("serve", False, explain(error), "change the setting", essential=True)
    return None


def _dispatch(url: str) -> CheckResult:
    """Whether the dispatching queue answers. Without it executions end later."""
    try:
        return CheckResult("engine", True, asyncio.run(describe_dispatch(ENGINE, url)))
    except (InvalidInput, ConnectionError) as error:
        cure = f"start it, or correct {ENGINE}; meanwhile servers poll the database"
        return CheckResult("engine", False, str(error), cure)


def _notices(settings: Settings, lost: int) -> CheckResult:
    """The channels of notices, and the number of notices that were given up."""
    names = ", ".join(sorted(settings.notices.channels))
    if not names:
        return CheckResult(
            "notices", True, f"no channel; approvals are not announced until {SMTP_URL} is set"
        )
    if settings.public_url is None:
        cure = "set WFCORE_PUBLIC_URL"
        return CheckResult(
            "notices", False, f"{names}; without a public URL messages have no link", cure
        )
    if lost:
        cure = "wfcore notice list --status FAILED"
        return CheckResult("notices", False, f"{names}; {lost} given up", cure)
    return CheckResult("notices", True, names)


async def _given_up(system: System) -> int:
    """The number of notices that were given up."""
    found = await list_notices(system.services, PageRequest(1, 1), (NoticeStatus.FAILED,))
    return found.total or 0


def tried(settings: Settings, work_in: WorkIn, to: str) -> Sequence[CheckResult]:
    """The results of a test message over each channel, by mail to *to*."""
    return [_tried(work_in, name, to) for name in sorted(settings.notices.channels)]


def _tried(work_in: WorkIn, channel: str, to: str) -> CheckResult:
    async def send(system: System) -> str:
        return await try_channel(system.settings, system.services, channel, to)

    try:
        return CheckResult(f"notice {channel}", True, work_in(send, fresh=True))
    except (WfError, CommandFailed, OSError) as error:
        cure = f"check {setting_of_channel(channel)}"
        return CheckResult(f"notice {channel}", False, explain(error), cure)


def _providers(
    users: Mapping[str, Sequence[str]], providers: Mapping[str, Provider]
) -> CheckResult:
    """
    The configured providers, and the providers that are not configured but have *users*
    (workflows).
    """
    detail = "; ".join(map(described, providers.values())) or "none; AI steps need one"
    missing = [(name, users[name]) for name in sorted(users) if name not in providers]
    if (users or providers) and not is_available():
        return CheckResult("providers", False, f"{detail}; AI steps cannot run here", CURE)
    clear = [one for one in providers.values() if one.in_the_clear]
    if missing:
        used = "; ".join(f"{name} is used by {', '.join(flows[:_FEW])}" for name, flows in missing)
        cure = ", ".join(f"set {setting_of(name)}" for name, _ in missing)
        return CheckResult("providers", False, f"{detail}; not configured: {used}", cure)
    if clear:
        return CheckResult("providers", False, detail, f"use https for {clear[0].name}")
    return CheckResult("providers", True, detail)


def _probed(provider: Provider) -> CheckResult:
    fine, detail = probe(provider)
    cure = None if fine else f"check {provider.setting} and the base URL"
    return CheckResult(f"provider {provider.name}", fine, detail, cure)


def _signing(settings: Settings) -> list[CheckResult]:
    """The names of the keys that sign and verify links, to compare servers."""
    if not settings.signing_keys:
        return []
    first, *older = (name for name, _ in settings.signing_keys)
    kept = f", {', '.join(older)} still verify older ones" if older else ""
    return [CheckResult("signing", True, f"{first} of {SIGNING_KEY} signs links{kept}")]


@define
class _Stored:
    """
    The results of opening the store once: the findings; and, as far as they could be read, the
    workflows that use each provider and the number of notices that were given up.
    """

    checks: Sequence[CheckResult] = ()
    wanted: Mapping[str, Sequence[str]] = field(factory=dict)
    given_up: int = 0


def _store(settings: Settings, work_in: WorkIn) -> _Stored:
    """The store is opened once: a database that is down is waited for once."""
    found = _Stored()

    async def read(system: System) -> None:
        with suppress(WfError, OSError):
            found.wanted = await wanted(system)
            found.given_up = await _given_up(system)
        found.checks = await _open_store(system)

    if settings.store is None and not settings.data.exists():
        found.checks = [CheckResult("store", True, "not made yet")]
        return found
    try:
        work_in(read, schema=Schema.AS_IS)
    except Unmade as empty:
        found.checks = [CheckResult("store", True, str(empty))]
    except (WfError, CommandFailed, OSError) as error:
        found.checks = [CheckResult("store", False, explain(error), _cure(error), essential=True)]
    return found


def _cure(error: Exception) -> str:
    if isinstance(error, StoreUnavailable) and error.is_full:
        return "make room on the disk; what is stored is unharmed"
    if isinstance(error, InvalidInput):
        return "correct the URL"
    if isinstance(error, OlderSchema):
        return "wfcore migrate"
    if isinstance(error, StoreUnavailable):
        return "start the database, or wait until it can be used; what is stored is unharmed"
    if isinstance(error, Elsewhere):
        return "work with the other one; what a backup restores would be a second service"
    return "wfcore restore fills an empty data folder from a backup"


async def _open_store(system: System) -> list[CheckResult]:
    """The findings about an open store, whose schema was read; `ping` writes a row durably."""
    await system.services.store.ping()
    records = await _records(system)
    return [
        await _kept(system),
        await _artifacts(system),
        _clock(system.services.clock),
        await _webhooks(system.services),
        *await _passkeys(system),
        records,
    ]


async def _kept(system: System) -> CheckResult:
    """The place of the store, and for a database server its settings that are wrong."""
    store = system.services.store
    if not system.location.startswith(POSTGRES):
        schema = migrations()[-1][0]
        kind = "nothing is stored" if system.location == "memory" else f"schema {schema}, writable"
        return CheckResult("store", True, f"{system.location}: {kind}")
    from adapters_store.postgres.report import report  # its driver is of an extra

    settings, wall = system.settings, system.services.clock.now
    found = await report(cast("Any", store), wall, str(settings.store), settings.direct)
    return CheckResult(
        "store", found.cure is None, f"{system.location}: {found.detail}", found.cure
    )


async def _artifacts(system: System) -> CheckResult:
    """Whether an artifact can be stored, read and deleted."""
    files, where = system.services.files, system.settings.artifacts or "in the data folder"
    try:
        kept = await files.store(_PROBE, f"{_PROBE}-{os.getpid()}", BytesIO(b"ok"))
        got = b"".join([part async for part in files.read(kept.storage_key, 0, kept.size)])
        await files.delete_executions(_PROBE)
    except StoreUnavailable as error:
        cure = "check the folder, or the bucket's name, region, endpoint and credentials"
        return CheckResult("artifacts", False, f"{where}: {error.detail}", cure)
    if got != b"ok":
        return CheckResult(
            "artifacts", False, f"{where}: gives back what was not stored", "replace it"
        )
    direct = "; links lead there" if system.settings.direct_downloads else ""
    return CheckResult("artifacts", True, f"{where}, writable{direct}")


def compared(work_in: WorkIn, confirm: Callable[[Sequence[str]], None] | None) -> CheckResult:
    """
    The check of artifacts' files against their records. With *confirm*, files of executions that
    are not in the store are deleted, once *confirm* has been called with their ids.
    """
    found = work_in(lambda system: compare_files(system.services))
    if confirm is not None and found.strange:
        confirm(found.strange)
        work_in(lambda system: delete_strange(system.services, found))
        found.strange.clear()
    faults = [
        f"{len(keys)} {what}: {', '.join(keys[:_FEW])}{'…' if len(keys) > _FEW else ''}"
        for keys, what in (
            (found.missing, "records without a file"),
            (found.strange, "executions with files that are not in the store"),
            (found.unrecorded, "files without a record, which go with their executions"),
        )
        if keys
    ]
    if found.beyond:
        faults.append(f"{found.beyond} more")
    counts = f"{found.files:,} files, {found.records:,} records"
    cure = None
    if found.strange:
        cure = "wfcore doctor --artifacts --mend deletes files of executions that are gone"
    elif found.missing:
        cure = "restore the files from a copy or an older version of the bucket"
    ok = not (found.strange or found.missing or found.beyond)
    return CheckResult("files", ok, "; ".join([counts, *faults]), cure)


def _clock(clock: Clock) -> CheckResult:
    """Whether the wall clock jumped, and the consequences. AP-4, EX-30."""
    clock = clock.machine if isinstance(clock, StoreTime) else clock
    wall, deadlines, work = clock.now(), clock.deadline_now(), clock.service_now()
    found = []
    if abs(deadlines - wall) > SECOND:
        by = (wall - deadlines) // SECOND
        found.append(f"it jumped by {by:+d} s; for five minutes approvals expire as if it had not")
    if work - deadlines > SECOND:
        ahead = (work - deadlines) // SECOND
        found.append(f"it was set back; work goes by a time that is {ahead} s ahead of it")
    cure = "let an NTP service keep the clock" if found else None
    return CheckResult("clock", not found, "; ".join(found) or "no jump", cure)


async def _records(system: System) -> CheckResult:
    """The due records that cannot be read; `wfcore check` reads all records."""
    services = system.services
    now = services.store.now()
    async with services.store.view() as view:
        await view.executions.abandoned(_PAGE)
        await view.executions.grace_over(_PAGE)
        await view.approvals.due(now, _PAGE)
        await view.approvals.reminders_due(now, _PAGE)
        await view.timers.due(now, _PAGE)
        await view.callbacks.due(_PAGE)
    unreadable: Mapping[tuple[str, str], str] = getattr(services.store, "unreadable", dict)()
    if not unreadable:
        return CheckResult("records", True, "what is due can be read")
    named = ", ".join(f"{kind} {id}" for kind, id in sorted(unreadable))
    cure = "wfcore check names all; restore them from a backup, or run the version that wrote them"
    return CheckResult("records", False, f"cannot be read, and are left alone: {named}", cure)


async def _passkeys(system: System) -> Sequence[CheckResult]:
    """Whether the passkeys of all accounts count at the server's address; nothing without any."""
    found = await all_passkeys(system.services)
    detail = lost_passkeys(found, party_of(system.services))
    if not found:
        return []
    if detail is None:
        return [CheckResult("passkeys", True, f"{len(found)} registered")]
    cure = "set WFCORE_PUBLIC_URL back to that host, or let people register others"
    return [CheckResult("passkeys", False, detail, cure)]


async def _webhooks(services: Services) -> CheckResult:
    listed: list[Webhook] = []
    page: PageRequest | None = PageRequest(size=_PAGE)
    while page is not None:
        found = await list_webhooks(services, OPERATOR, page)
        listed += found.rows
        page = found.rest
    active = [one for one in listed if one.status is WebhookStatus.ACTIVE]
    bare = [one.id for one in active if one.auth_mode is AuthMode.NONE]
    if not bare:
        return CheckResult("webhooks", True, f"{len(active)} active")
    return CheckResult(
        "webhooks",
        False,
        f"OPEN TO ALL, without key or secret: {', '.join(bare)}",
        "wfcore webhook delete ID, then create it with --key",
    )
