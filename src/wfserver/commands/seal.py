"""`wfcore seal`: the keys that seal the store. Decision 86."""

import socket

import click

from adapters_store.sql.sealing import Sealed, id_of, new_key
from wfcore.usecases.nodes import NodeState, known_nodes
from wfserver.compose import System
from wfserver.data.seal_keys import (
    add_key,
    file_of,
    read_keys,
    remove_keys,
    require_settled,
    sealer_of,
)
from wfserver.errors import CommandFailed
from wfserver.settings.names import SEAL_KEY
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import CommandGroup, pass_invocation
from wfserver.terminal.output import put_fields, put_json, say


@click.group("seal", cls=CommandGroup)
def seal_command() -> None:
    """What is stored is sealed: with which keys, and with a new one."""


@seal_command.command("key")
@pass_invocation
def key(invocation: Invocation) -> None:
    """A new random key, for WFCORE_SEAL_KEY or a file of your own. Nothing is stored."""
    made = new_key()
    if invocation.json:
        put_json({"key": made, "id": id_of(made)})
    else:
        say(made)


@seal_command.command("status")
@pass_invocation
def status(invocation: Invocation) -> None:
    """The keys in use, and how much is sealed with each."""

    async def job(system: System) -> tuple[str, dict[str, int], int]:
        store, sealer = _store(system), sealer_of(system.settings)
        assert sealer is not None
        found = dict(await store.sealed())
        clear = found.pop(None, 0)
        held = {id: found.get(id, 0) for id in sealer.keys}
        return sealer.where, held, clear

    where, sealed, clear = invocation.work_in(job)
    if invocation.json:
        put_json({"keys": where, "sealed": sealed, "clear": clear})
        return
    put_fields({"keys in": where, **{f"sealed with {id}": n for id, n in sealed.items()}})
    if clear:
        say(f"{clear:,} values are in clear, and nothing reads them: wfcore check names them")


@seal_command.command("rotate")
@click.option("--accept-clear", is_flag=True, help="Seal what is in clear, too.")
@click.option("--no-new-key", is_flag=True, help="Seal with the first key that is there.")
@pass_invocation
def rotate(invocation: Invocation, accept_clear: bool, no_new_key: bool) -> None:
    """
    Seal everything with a new key, beside a running server.

    What is in clear is not read, and stays as it is: whoever can write to the database could have
    put it there. --accept-clear takes it as it is, for a database that was kept without a key.

    Keys in WFCORE_SEAL_KEY are yours: put the new one first there, restart, then call this. The key
    before stays readable until wfcore seal prune.

    Servers on other machines have key files of their own: put the new key behind the others in each
    file, then to the front in each, then call this with --no-new-key.
    """

    async def job(system: System) -> tuple[str, int]:
        store, settings = _store(system), system.settings
        if settings.seal_key is None and not no_new_key:
            await _require_alone(system)
            add_key(file_of(settings))
        sealer = sealer_of(settings)
        assert sealer is not None
        return sealer.keys[0], await store.reseal(sealer, clear=accept_clear)

    id, count = invocation.work_in(job)
    if invocation.json:
        put_json({"key": id, "sealed": count})
    else:
        say(f"{count:,} values are sealed with the key {id}")
        say("Keep the keys safe. wfcore compact takes what was in clear out of a database file.")


@seal_command.command("prune")
@pass_invocation
def prune(invocation: Invocation) -> None:
    """Remove keys that nothing is sealed with any more; a backup from before still needs them."""

    async def job(system: System) -> list[str]:
        store, settings = _store(system), system.settings
        if settings.seal_key is not None:
            raise CommandFailed(
                f"the keys are in {SEAL_KEY}; wfcore seal status says which are in use"
            )
        file = file_of(settings)
        require_settled(file)
        gone = await store.forget_keys([id_of(key) for key in read_keys(file)[1:]])
        remove_keys(file, gone)
        return list(gone)

    gone = invocation.work_in(job)
    if invocation.json:
        put_json({"removed": gone})
    else:
        say(f"removed: {', '.join(gone)}" if gone else "every key is in use")


def _store(system: System) -> Sealed:
    store = system.services.store
    if not isinstance(store, Sealed):
        raise CommandFailed("this store keeps nothing that could be sealed anew")
    return store


async def _require_alone(system: System) -> None:
    """Raises `CommandFailed` if servers on other machines could not read what a new key seals."""
    here, found = socket.gethostname(), await known_nodes(system.services)
    others = {node.host for node, state in found if state is not NodeState.GONE} - {here}
    if others:
        raise CommandFailed(
            f"servers on {', '.join(sorted(others))} could not read what a new key seals: put one "
            "(wfcore seal key) behind the others in the key file of each machine, then to the "
            "front in each, then use --no-new-key"
        )
