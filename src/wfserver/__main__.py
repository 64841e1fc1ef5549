"""
The entry point of the command `wfcore`, and of `python -m wfserver`.

Only the standard library is imported here, so that a missing extra can be reported: the core
installs without the packages of the server.
"""

import sys

OWN = ("wfserver", "wfcore", "adapters_")


def main() -> None:
    """Run the command line, and end the process with its exit status."""
    try:
        from wfserver.cli import main as command_line

        sys.exit(command_line(sys.argv[1:]))
    except ModuleNotFoundError as missing:
        name = missing.name or ""
        if name.startswith(OWN):
            raise
        if sys.argv[1:2] == ["simulate"]:  # which needs the core alone
            from wfcore.testing.simulator.command import main as simulate

            sys.exit(simulate(sys.argv[2:]))
        from wfcore.installed import install

        print(f"error: {name} is missing: {install('server')}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
