"""
Where the command starts. Only the standard library here, so that a missing extra can be said.

The core installs without the server's packages; the command without them says what to do.
"""

import sys


def main() -> None:
    """Run the command line and end the process with its exit status."""
    try:
        from wfserver.cli import main as command_line
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith(("wfserver", "wfcore", "adapters_")):
            raise
        print('error: the command needs the server: pip install "wfcore[server]"', file=sys.stderr)
        sys.exit(1)
    sys.exit(command_line(sys.argv[1:]))
