"""Serving as a command: a free port, then the server, with a note of its URL while it runs."""

import errno
from collections.abc import Callable
from typing import TYPE_CHECKING

from wfserver.data.pidfile import server_note
from wfserver.errors import CommandFailed
from wfserver.serving.sockets import close, listen

if TYPE_CHECKING:
    from wfserver.serving.serve import ServerInfo
    from wfserver.settings.record import Settings


def require_free_port(settings: "Settings") -> None:
    """Raises `CommandFailed`, with a cure, if the server could not listen."""
    host, port = settings.host, settings.port
    try:
        close(listen(host, port))
    except OSError as error:
        raise _explained(error, host, port) from None


def serve(settings: "Settings", on_ready: "Callable[[ServerInfo], None]") -> None:
    """Serve until SIGTERM or SIGINT. Raises `CommandFailed` if the port is taken."""
    from wfserver import logs

    logs.set_up(settings.log, settings.log_format)
    require_free_port(settings)
    with server_note(settings.data) as note:

        def ready(info: "ServerInfo") -> None:
            note.here(info.url)
            on_ready(info)

        if settings.processes > 1:
            from wfserver.serving.processes import fork_all

            process = fork_all(settings)
        else:
            process = None
        from wfserver.serving.serve import run

        run(settings, ready, process=process)


def _explained(error: OSError, host: str, port: int) -> CommandFailed:
    if error.errno == errno.EADDRINUSE:
        return CommandFailed(f"port {port} of {host} is taken; free it, or choose one with --port")
    if error.errno in (errno.EACCES, errno.EPERM):
        return CommandFailed(
            f"this user may not listen on port {port}; choose one above 1023 with --port"
        )
    return CommandFailed(
        f"cannot listen on {host}:{port}: {error.strerror}; choose another with --host"
    )
