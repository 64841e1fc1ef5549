"""
The message of a command that fails: a line with the mistake and its cure.

The core's errors are imported only after a failure, because `wfcore --help` needs none.
"""

import errno
from typing import TYPE_CHECKING

import click

from wfserver.errors import CommandFailed

if TYPE_CHECKING:
    from wfcore.errors import InvalidDefinition

FAILED = 1
USAGE = 2


def is_expected(error: BaseException) -> bool:
    """Whether commands may fail with *error*. Other errors are defects, shown with a traceback."""
    from wfcore.errors import WfError

    return isinstance(error, (WfError, CommandFailed, OSError, click.ClickException, click.Abort))


def status_of(error: BaseException) -> int:
    """The exit status: 2 for wrong usage or if the error says so, otherwise 1."""
    status: int = getattr(error, "exit_status", FAILED)
    return USAGE if isinstance(error, click.UsageError) else status


def explain(error: BaseException) -> str:
    """The message: one line, but for a definition one line for each mistake."""
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
    message = error.format_message().rstrip(".").replace("\n", " ").replace("\t", "")
    path = error.ctx.command_path if error.ctx else "wfcore"
    return f"{message} (see {path} --help)"


def _mistakes(error: "InvalidDefinition") -> str:
    """Lines `file:line: path: message`, with which editors find the place."""
    lines = []
    for problem in error.problems:
        where = ":".join(str(part) for part in (error.source, problem.line) if part)
        what = f"{problem.path}: {problem.message}" if problem.path else problem.message
        lines.append(f"{where}: {what}" if where else what)
    return "\n".join(lines)


def _system(error: OSError) -> str:
    message = error.strerror or str(error)
    if error.errno == errno.ENOSPC:
        message += "; make room on the disk"
    return f"{error.filename}: {message}" if error.filename else message
