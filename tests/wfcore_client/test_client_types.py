"""What a type checker says of programs that use the clients."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
from wfcore_client import AsyncClient, Client
from wfcore_client.shapes import StartView, StatusView

async def both(client: Client, other: AsyncClient) -> None:
    view: StatusView = client.execution("e", wait_s=5, outputs=False)
    started: StartView = await other.start("w", {"a": 1}, monitored=True)
    client.execution(5)
    client.execution("e", output=False)
    wrong: StartView = await other.execution("e")
    client.no_such_call()
"""


def test_type_checkers_know_every_call(tmp_path: Path) -> None:
    """Both clients' methods have the parameters and the result of their call, and no others."""
    (tmp_path / "program.py").write_text(PROGRAM)
    config = ("--strict", "--config-file=", f"--cache-dir={tmp_path}", "--follow-imports=silent")
    words = [sys.executable, "-m", "mypy", *config, "--no-error-summary", "program.py"]
    run = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    errors = [line.partition(": error: ")[0] for line in run.stdout.splitlines() if "error" in line]
    assert errors == [f"program.py:{line}" for line in (8, 9, 10, 11)], run.stdout
