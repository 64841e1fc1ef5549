"""The tables of what an installation weighs and its imports cost, from measurements."""

import json

from wfdocs.markdown import table
from wfdocs.rules import ROOT

RESULTS = ROOT / "bench/installed.json"


def measured() -> str:
    """The time and place of the measurement, the installations, and the programs."""
    found = json.loads(RESULTS.read_text())
    where = f"{found['date']}, Python {found['python']}, {found['machine']}"
    names = list(found["installations"])
    heads = ["this version" if name == "now" else f"{name}, before it" for name in names]
    extras = found["installations"]["now"]
    sizes = [
        (f"`[{extra}]`" if extra else "base", *(_size(found, name, extra) for name in names))
        for extra in extras
    ]
    costs = [(what, *(_cost(of[name]) for name in names)) for what, of in found["programs"].items()]
    parts = (table(("installed", *heads), sizes), table(("process", *heads), costs))
    head = (
        f"Measured on {where}, in one run; load average of the machine before: {found['busy']}.\n"
    )
    return "\n".join([head, *parts])


def _size(found: dict[str, dict[str, dict[str, dict[str, float]]]], name: str, extra: str) -> str:
    one = found["installations"][name].get(extra)
    return f"{one['distributions']} packages, {one['installed_mb']} MB" if one else "not there yet"


def _cost(one: dict[str, float]) -> str:
    return f"{one['modules']} modules, {one['cpu_ms']:.0f} ms"
