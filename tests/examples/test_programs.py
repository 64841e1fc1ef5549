"""The examples for embedders run as they are written."""

import subprocess
import sys

import pytest

from .loading import EXAMPLES


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("embed_rules", "COMPLETED hello"),
        ("embed_service", "COMPLETED [{'order': 'A-1', 'amount': 20}]"),
        ("own_runner", "COMPLETED {'order': 'A-7', 'charged': True}"),
    ],
)
def test_an_example_runs_and_says_what_it_promises(name: str, says: str) -> None:
    """What the documentation shows is what a reader gets."""
    run = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")], capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0, run.stderr
    assert says in run.stdout


def test_the_core_needs_attrs_and_cattrs_alone() -> None:
    """Importing rules, use cases and the memory store pulls in no other package."""
    code = """
import sys
import wfcore.usecases.executions.worker, wfcore.usecases.webhooks.webhooks, wfcore.wire.executions
import adapters_store.memory, adapters_runtime.system, adapters_runtime.expressions.templates
known = {"attr", "attrs", "cattrs", "typing_extensions", "wfcore", "adapters_store",
         "adapters_runtime"}
found = {name.split(".")[0] for name in sys.modules} - set(sys.stdlib_module_names) - known
print(sorted(name for name in found if not name.startswith("_")))
"""
    run = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{code}"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.stdout.strip() == "[]", run.stdout + run.stderr
