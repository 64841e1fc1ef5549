"""
`python docs/fill.py [--check]`: what the documentation shows of the tables, written afresh.

A page marks a block with the command whose output it is:

    <!-- wfcore states approval --format mermaid -->
    ```mermaid
    …
    ```
    <!-- end -->

The block between the marks is replaced by that output, in the fence that is there. With
--check nothing is written, and the exit status is 1 where a page is stale.
"""

import re
import sys
from pathlib import Path

from click.testing import CliRunner

from wfserver.cli import cli
from wfserver.terminal.invocation import Session

HERE = Path(__file__).parent
MARKED = re.compile(r"<!-- wfcore (?P<call>[^\n]+) -->\n```(?P<as>\w*)\n.*?```\n<!-- end -->", re.S)


def filled(text: str) -> str:
    """*text* with every marked block as its command says it today."""
    return MARKED.sub(_block, text)


def _block(found: re.Match[str]) -> str:
    ran = CliRunner().invoke(cli, found["call"].split(), obj=Session(), catch_exceptions=False)
    if ran.exit_code:
        raise SystemExit(f"wfcore {found['call']}: {ran.output}")
    said = f"```{found['as']}\n{ran.output.rstrip()}\n```"
    return f"<!-- wfcore {found['call']} -->\n{said}\n<!-- end -->"


def main(arguments: list[str]) -> int:
    """Fill every page, or say which are stale."""
    pages = {path: path.read_text() for path in sorted(HERE.rglob("*.md"))}
    stale = {path: filled(text) for path, text in pages.items() if filled(text) != text}
    for path, text in stale.items():
        print(f"{'stale' if '--check' in arguments else 'filled'}: {path.relative_to(HERE)}")
        if "--check" not in arguments:
            path.write_text(text)
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
