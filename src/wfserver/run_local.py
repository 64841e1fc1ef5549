"""Running one workflow without a server: the real worker and runner over a store in memory."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from attrs import evolve, frozen

from wfcore.errors import InvalidInput
from wfcore.model.access import OPERATOR, Principal, Tier
from wfcore.model.approval import Approval, ApprovalStatus, DecisionSource
from wfcore.model.event import Event
from wfcore.model.execution import Artifact, Execution, ExecutionStatus, TriggerSource
from wfcore.model.json import Json
from wfcore.model.workflow import CodeStep, Definition
from wfcore.rules.approval.agreement import items_hash
from wfcore.rules.execution.machine import EXECUTION
from wfcore.time import DurationMs
from wfcore.usecases.accounts.accounts import create_account, set_secret
from wfcore.usecases.approvals.approvals import approvals_of
from wfcore.usecases.approvals.deciding import Decide, decide_approval
from wfcore.usecases.artifacts import list_artifacts
from wfcore.usecases.executions.executions import cancel_execution, read_events
from wfcore.usecases.executions.starting import start_execution
from wfcore.usecases.services import Services
from wfcore.usecases.workflows.workflows import apply_workflow
from wfserver.compose import System, open_system
from wfserver.serving.engine import engine, runner_of
from wfserver.settings.record import Settings
from wfserver.terminal.review import ReviewerChoice

_POLL_MS = 50
_OWNER = "you@localhost"

ARTIFACTS = Path("wfcore-artifacts")
"""The default folder of artifacts, with a folder for each execution."""


@frozen
class Watcher:
    """
    The user of a run: *on_event* is called with each event, and *decide* with each approval (it
    returns None if nobody can decide). *artifacts* is the folder for artifacts, made if there are
    artifacts.
    """

    on_event: Callable[[Event], None]
    decide: Callable[[Approval], ReviewerChoice | None]
    artifacts: Path | None = None


@frozen
class LocalRun:
    """An execution that has ended, and its artifacts, copied to files."""

    execution: Execution
    artifacts: tuple[Path, ...]


def for_a_run(settings: Settings, folder: Path) -> Settings:
    """
    The settings for one run, with *folder* for transient files.

    Packages of steps are kept for the next run: in the server's folder, or if there is no data
    folder, among the caches of this user.
    """
    if settings.packages or settings.data.is_dir():  # only the server's store knows what is in use
        kept = settings.packages_folder
        return evolve(settings, data=folder, packages=kept, prune_packages=False)
    return evolve(settings, data=folder, packages=_users_packages())


def _users_packages() -> Path:
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "wfcore" / "packages"


async def run_here(
    settings: Settings,
    definition: Definition,
    inputs: Mapping[str, Json],
    watcher: Watcher,
    children: Sequence[Definition] = (),
) -> LocalRun:
    """
    Run *definition*, without its triggers, to its end. The data folder of *settings* is transient.
    *children*: the workflows that *definition* may start.

    If nobody can decide an approval, the execution is cancelled. Raises `InvalidInput`, and
    `InvalidDefinition` if packages of a step cannot be installed.
    """
    policy = evolve(settings.policy, one_for_all=True)
    settings = evolve(settings, store="memory:", drain_ms=DurationMs(0), policy=policy)
    async with open_system(settings) as system:
        services = system.services
        owner = Principal(await create_account(services, _OWNER, Tier.PRO))
        for name, value in _named_secrets(definition, *children).items():
            await set_secret(services, OPERATOR, owner.account.id, name, value)
        for one in (*children, definition):
            alone = evolve(one, triggers=())
            workflow = await apply_workflow(services, owner.account.id, alone)
        started = await start_execution(
            services,
            owner,
            workflow.id,
            inputs,
            source=TriggerSource.MANUAL,
            monitored=True,
        )
        async with engine(system, runner_of(system)):
            run = await _watch(services, started.execution_id, watcher)
        return LocalRun(run, await _keep_artifacts(system, run.id, watcher.artifacts))


def _named_secrets(*definitions: Definition) -> Mapping[str, str]:
    """
    The secrets that steps of *definitions* list, from the variables `WF_SECRET_<NAME>`, because
    there is no account. Raises `InvalidInput` for a missing secret.
    """
    walked = (step for one in definitions for step in one.walk())
    steps = (step for step in walked if isinstance(step, CodeStep))
    given = {
        name: os.environ.get(f"WF_SECRET_{name}", "") for step in steps for name in step.secrets
    }
    for name in sorted(given):
        if not given[name]:
            raise InvalidInput("secrets", f"set WF_SECRET_{name} in the environment")
    return given


async def _watch(services: Services, id: str, watcher: Watcher) -> Execution:
    last = 0
    with services.wakeup.follow(id) as rest:
        while True:
            run, events = await read_events(services, OPERATOR, id, last)
            for event in events:
                watcher.on_event(event)
                last = event.number
            if events:
                continue
            if run.status in EXECUTION.final:
                return run
            if run.status is ExecutionStatus.AWAITING_APPROVAL:
                await _decide(services, id, watcher)
            else:
                await rest(_POLL_MS)


async def _decide(services: Services, id: str, watcher: Watcher) -> None:
    for approval in await approvals_of(services, OPERATOR, id):
        if approval.status is ApprovalStatus.PENDING:
            decision = watcher.decide(approval)
            if decision is None:
                await cancel_execution(services, OPERATOR, id)
                return
            decide = Decide(
                approval.id,
                decision.choice,
                DecisionSource.CONSOLE,
                decision.comment,
                items_hash(approval),
                alone=True,
            )
            await decide_approval(services, OPERATOR, decide)


async def _keep_artifacts(system: System, id: str, folder: Path | None) -> tuple[Path, ...]:
    """Copy the artifacts to *folder*, under the last parts of their names; replace no file."""
    kept = []
    for artifact in await list_artifacts(system.services, OPERATOR, id):
        kept.append(_new_file(folder or ARTIFACTS / id, artifact))
        with kept[-1].open("xb") as copy:
            async for chunk in system.services.files.read(artifact.storage_key, 0, artifact.size):
                copy.write(chunk)
    return tuple(kept)


def _new_file(folder: Path, artifact: Artifact) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    name = Path(artifact.name).name
    target = folder / name
    number = 2
    while target.exists() or target.is_symlink():
        target = folder / f"{number}-{name}"
        number += 1
    return target
