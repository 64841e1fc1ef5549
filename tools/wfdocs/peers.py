"""The tables of the page that compares wfcore with similar projects, from measurements."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from wfdocs.markdown import table
from wfdocs.rules import ROOT

RESULTS = ROOT / "bench/peers/results.json"

Measured = Mapping[str, Any]
Figures = Mapping[str, Callable[[Measured], str]]


def measured() -> str:
    """
    The time and place of the measurement, and a table for each subject with a row for each peer.
    """
    document = json.loads(RESULTS.read_text())
    peers = document["peers"].values()
    where = f"{document['date']}, Python {document['python']}, {document['machine']}"
    parts = [f"Measured on {where}, with the versions that were current on that day.\n"]
    for figures in (PROGRAM, INSTALLATION, KIT):
        rows = [(_name(one), *(cell(one) for cell in figures.values())) for one in peers]
        parts.append(table(("", *figures), rows))
    return "\n".join(parts)


def work() -> str:
    """
    The time and place of the comparison of servers, the load of the machine, and a row for each.
    """
    found = json.loads(RESULTS.read_text())["work"]
    where = f"{found['date']}, Python {found['python']}, {found['machine']}"
    many, steps, busy = found["clients"], found["steps"], found["busy"]
    figures: Figures = {
        f"one step, {many} clients": lambda one: f"{one['per_second']:,.0f}/s",
        "wfcore's rate to it": lambda one: f"{one['ratio']:.2f}",
        "CPU each": lambda one: _ms(one["cpu_ms"]),
        "one client": lambda one: _ms(one["p50_ms"]),
        f"{steps} steps": lambda one: _ms(one["row_ms"]),
        f"polls, {many} clients": lambda one: f"{one['polls_per_second']:,.0f}/s",
        "CPU of a poll": lambda one: _ms(one["poll_cpu_ms"]),
        "approved → end seen": lambda one: _ms(one["approval_ms"]),
    }
    rows = [(one["title"], *(cell(one) for cell in figures.values())) for one in found["servers"]]
    head = f"Measured on {where}; load average of the machine before: {busy}.\n"
    return "\n".join([head, table(("", *figures), rows)])


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:.{0 if milliseconds >= 20 else 1 if milliseconds >= 2 else 2}f} ms"


def _name(peer: Measured) -> str:
    return f"{peer['title']} {peer['version']}"


def _continues(peer: Measured) -> str:
    return f"not run, needs {peer['needs']}" if peer["needs"] else _yes(peer["continued"])


def _for_tests(peer: Measured) -> str:
    names = (f"`{name}` ({count})" for name, count in peer["for_tests"].items())
    return ", ".join(names) or "none"


def _yes(fact: bool) -> str:
    return "yes" if fact else "no"


PROGRAM: Figures = {
    "lines of the program": lambda peer: str(peer["lines"]),
    "continues after the kill": _continues,
}
INSTALLATION: Figures = {
    "CPU time of imports": lambda peer: f"{peer['import_ms']:.0f} ms",
    "of a whole run": lambda peer: f"{peer['run_ms']:.0f} ms" if peer["run_ms"] else "not run",
    "packages": lambda peer: str(peer["distributions"]),
    "size": lambda peer: f"{peer['installed_mb']:.0f} MB",
}
KIT: Figures = {
    "typed (errors of mypy)": lambda peer: f"{_yes(peer['py_typed'])} ({peer['strict_errors']})",
    "misspelt import found": lambda peer: _yes(peer["misspelt_is_found"]),
    "for tests (public names)": _for_tests,
}
