"""`wfcore evidence`: one file about one execution that anybody can check."""

import json
import os
from collections.abc import Collection, Sequence
from pathlib import Path

import click

from adapters_runtime.passkeys import verifies
from wfcore.rules.audit.chain import read_anchor
from wfcore.rules.audit.evidence import (
    Unfit,
    anchor_misfit,
    key_lines,
    keys_in,
    proved,
    read_evidence,
    untold,
)
from wfcore.rules.canonical import digest
from wfcore.usecases.administration import server
from wfserver.commands.audit import anchor_texts, anchors
from wfserver.errors import CommandFailed
from wfserver.failures import FAILED
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import CommandGroup, pass_invocation
from wfserver.terminal.output import put_json, say


class _Evidence(CommandGroup):
    """The group `evidence`, in which `evidence ID` means `evidence write ID`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["write", *args]
        return super().resolve_command(ctx, args)


@click.group("evidence", cls=_Evidence)
def evidence_command() -> None:
    """What is known of one execution in one file: wfcore evidence EXECUTION."""


@evidence_command.command("write")
@click.argument("execution")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where to; must be new.  [default: EXECUTION.evidence.json]",
)
@anchors
@pass_invocation
def write(
    invocation: Invocation, execution: str, output: Path | None, anchored: tuple[Path, ...]
) -> None:
    """
    Write definition, inputs, results (secrets masked), approvals with rows before and after,
    hashes of artifacts, and the audit entries to check it all. Needs no server.
    """
    texts = anchor_texts(anchored)
    file = output or Path(f"{Path(execution).name}.evidence.json")
    if os.path.lexists(file):
        raise CommandFailed(f"{file} exists already; give another name with --output")
    made = invocation.perform(server.write_evidence, execution=execution, anchors=texts)
    text = made["text"]
    with open(file, "x", encoding="ascii", opener=_private) as written:
        written.write(text)
    hash = digest(text)
    if invocation.json:
        put_json({"file": str(file), "size": len(text), "sha256": hash})
    else:
        say(f"{file}: {len(text):,} bytes, SHA-256 {hash}")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@evidence_command.command("verify")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@anchors
@click.option(
    "--trust",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Passkeys that are known from elsewhere, as `wfcore passkey list --json` writes them.",
)
@click.option("--sha256", metavar="HEX", help="What wfcore evidence printed when FILE was written.")
@pass_invocation
def verify(
    invocation: Invocation,
    file: Path,
    anchored: tuple[Path, ...],
    trust: Path | None,
    sha256: str | None,
) -> int:
    """
    Whether FILE fits together, and what that shows. Needs no data folder and no network.

    Exit status 1 says what does not fit, or which decision no audit entry in it tells of; with the
    SHA-256 such a file fits. Without an anchor that was kept elsewhere, and without the SHA-256, it
    could have been written by anybody.
    """
    known = [read_anchor(text) for text in anchor_texts(anchored)]
    trusted = _trusted(trust)
    why = gap = None
    keys: Sequence[str] = ()
    try:
        text = file.read_bytes().decode("ascii", "replace")
        if sha256 is not None and digest(text) != sha256.strip().lower():
            raise Unfit("its SHA-256 is another one")
        document = read_evidence(text, verifies)
        gap, keys = untold(document), key_lines(keys_in(document), trusted)
        misfits = (anchor_misfit(document, one) for one in known)
        why = next(filter(None, misfits), gap if sha256 is None else None)
    except Unfit as unfit:
        why = str(unfit)
    shown = [] if why else [*proved(anchored=bool(known), known=sha256 is not None, gap=gap), *keys]
    if invocation.json:
        put_json({"ok": why is None, "fault": why, "shown": shown})
    elif why is None:
        say("\n".join([f"{document['executionId']}: everything fits", *shown]))
    else:
        say(f"DOES NOT FIT: {why}")
    return 0 if why is None else FAILED


def _trusted(file: Path | None) -> Collection[tuple[str, str]]:
    """The pairs of account and public key in a file of trusted passkeys. Raises `CommandFailed`."""
    if file is None:
        return ()
    try:
        found = json.loads(file.read_bytes())
        return {(one["accountId"], one["publicKey"]) for one in found["items"]}
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        fix = "write it with wfcore passkey list --json"
        raise CommandFailed(f"{file} is no list of passkeys ({error!r}); {fix}") from None
