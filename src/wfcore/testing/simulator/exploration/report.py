"""The work of `wfcore simulate --exhaustive`: explore one scope, or list the scopes."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from wfcore.errors import InvalidInput
from wfcore.testing.simulator.catalogue import law_of
from wfcore.testing.simulator.exploration.scopes import SCOPES, Scope
from wfcore.testing.simulator.exploration.search import (
    Exploration,
    ReplayedPath,
    explore,
    replay_path,
)

LIST = "list"
"""The word that lists the scopes."""
Say = Callable[[str], None]


@frozen
class ScopeReport:
    """The report on one scope. `keep`: the folder for the path to a violation."""

    scope: str
    keep: Path | None = None
    as_json: bool = False

    def run(self, say: Say) -> int:
        """Explore, and report to *say*; return the exit status. Raises `InvalidInput`."""
        if self.scope == LIST:
            say(_listed(self.as_json))
            return 0
        scope = scope_named(self.scope)
        started = time.process_time()
        found = explore(scope)
        spent = time.process_time() - started
        played = replay_path(scope, found.path, found.constants) if found.broken else None
        file = self._kept(found)
        if self.as_json:
            say(json.dumps(_document(found, played, spent, file), indent=2))
        else:
            say("\n".join(_lines(found, played, spent, file)))
        return 0 if found.complete else 1

    def _kept(self, found: Exploration) -> Path | None:
        if found.broken is None or self.keep is None:
            return None
        self.keep.mkdir(parents=True, exist_ok=True)
        file = self.keep / f"scope-{found.scope.name}.json"
        kept = {
            "scope": found.scope.name,
            "broken": found.broken,
            "constants": sorted(found.constants),
            "path": found.path,
        }
        file.write_text(json.dumps(kept, indent=1) + "\n")
        return file


def scope_named(name: str) -> Scope:
    """The scope of that name. Raises `InvalidInput`, which names the scopes."""
    if name not in SCOPES:
        raise InvalidInput("--exhaustive", f"knows no scope {name!r}, but {', '.join(SCOPES)}")
    return SCOPES[name]


def replayed(kept: Mapping[str, Any]) -> ReplayedPath:
    """The replay of the path in a kept file. Raises `ValueError`, `KeyError`, `InvalidInput`."""
    return replay_path(scope_named(kept["scope"]), kept["path"], kept["constants"])


def _listed(as_json: bool) -> str:
    if as_json:
        scopes = [{"name": one.name, "about": one.about} for one in SCOPES.values()]
        return json.dumps({"items": scopes, "total": len(scopes)}, indent=2)
    wide = max(map(len, SCOPES))
    return "\n".join(f"{one.name:<{wide}}  {one.about}" for one in SCOPES.values())


def _lines(
    found: Exploration, played: ReplayedPath | None, spent: float, file: Path | None
) -> Sequence[str]:
    rate = found.states / spent if spent else 0
    lines = [
        f"{found.scope.name}: {found.scope.about}",
        f"{found.states:,} states, {found.moves:,} moves, {found.ends:,} at rest, the farthest "
        f"{found.depth} moves away, in {spent:.1f} s of CPU ({rate:,.0f} states/s)",
    ]
    if found.broken is not None and played is not None:
        lines += [
            f"\n{found.broken}",
            *played.trace,
            f"{'':>9}  the promise: {law_of(found.broken)}",
        ]
        lines += [f"again: wfcore simulate --replay {file}"] if file else []
    elif not found.complete:
        lines.append("not all states were visited")
    else:
        lines.append("every promise was kept in every state")
    return lines


def _document(
    found: Exploration, played: ReplayedPath | None, spent: float, file: Path | None
) -> Mapping[str, Any]:
    law = law_of(found.broken)
    return {
        "scope": found.scope.name,
        "states": found.states,
        "moves": found.moves,
        "depth": found.depth,
        "ends": found.ends,
        "complete": found.complete,
        "cpuSeconds": round(spent, 3),
        "broken": found.broken,
        "promise": {"id": law.id, "sentence": law.sentence} if found.broken else None,
        "path": list(found.path),
        "trace": list(played.trace) if played else [],
        "file": str(file) if file else None,
    }
