"""The error of the server's own parts. It needs no command line, which embedders may lack."""


class CommandFailed(Exception):
    """Raised when a command cannot do its work. The message says why, and what helps."""
