"""Workflows of simulated worlds: documents as authors write them, read by the real rules."""

import json
from functools import lru_cache

from wfcore.model.json import JsonObject
from wfcore.model.workflow import Definition
from wfcore.rules.definition.check import check_definition
from wfcore.testing.simulator.ports import SimCalendar


def definition_of(flow: JsonObject) -> Definition:
    """The definition that *flow* says. Raises `InvalidDefinition`."""
    return _read(json.dumps(flow))


@lru_cache(maxsize=4_096)
def _read(text: str) -> Definition:
    calendar = SimCalendar()
    return check_definition(json.loads(text), lambda template, known: (), calendar.problems)
