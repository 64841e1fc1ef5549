"""
What is said when a command fails: a line that names the mistake and its cure.

The core's errors are imported only when something failed: `wfcore --help` does without them.
"""

import errno
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from wfcore.errors import InvalidDefinition

FAILED = 1
USAGE = 2


class CommandFailed(Exception):
    """The command could not do its work; the message says why and what helps."""


def is_expected(error: BaseException) -> bool:
    """Whether a command may fail with it. Anything else is a defect and shows its traceback."""
    from wfcore.errors import WfError

    return isinstance(error, (WfError, CommandFailed, OSError, click.ClickException, click.Abort))


def status_of(error: BaseException) -> int:
    """The exit status: 2 if the command was used wrongly or the error says so; otherwise 1."""
    status: int = getattr(error, "exit_status", FAILED)
    return USAGE if isinstance(error, click.UsageError) else status


def explain(error: BaseException) -> str:
    """What to say; one line, but for definitions: a line for each of their mistakes."""
    from wfcore.errors import InvalidDefinition, InvalidInput, StoreUnavailable, Unreadable

    match error:
        case click.UsageError():
            return _usage(error)
        case click.ClickException():
            return error.format_message()
        case click.Abort() | KeyboardInterrupt():
            return "aborted"
        case InvalidDefinition():
            return _mistakes(error)
        case InvalidInput(field, fix):
            return f"{field}: {fix}" if field else fix
        case Unreadable(kind, id):
            return f"{kind} {id} cannot be read from the store; wfcore check names all such records"
        case StoreUnavailable():
            return f"{error}: {error.detail}" if error.detail else str(error)
        case OSError():
            return _system(error)
        case _:
            return str(error)


def _usage(error: click.UsageError) -> str:
    said = error.format_message().rstrip(".").replace("\n", " ").replace("\t", "")
    path = error.ctx.command_path if error.ctx else "wfcore"
    return f"{said} (see {path} --help)"


def _mistakes(error: "InvalidDefinition") -> str:
    """`file:line: path: message`, so that editors find the place."""
    lines = []
    for problem in error.problems:
        where = ":".join(str(part) for part in (error.source, problem.line) if part)
        what = f"{problem.path}: {problem.message}" if problem.path else problem.message
        lines.append(f"{where}: {what}" if where else what)
    return "\n".join(lines)


def _system(error: OSError) -> str:
    said = error.strerror or str(error)
    if error.errno == errno.ENOSPC:
        said += "; make room on the disk"
    return f"{error.filename}: {said}" if error.filename else said
