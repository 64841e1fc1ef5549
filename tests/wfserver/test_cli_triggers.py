"""Triggers from the command line: applied with a definition, listed with how they stand."""

from pathlib import Path

import pytest

from wfcore.errors import InvalidInput
from wfcore.model.trigger import Missed
from wfserver.settings.record import settings_from

from .conftest import STEP, Call

BEHIND = f"""\
name: Then
{STEP}
triggers:
  - {{kind: DELAYED_COMPLETION, workflow: Greet, delaySeconds: 60, maxRuns: 3}}
  - {{kind: SCHEDULE, cron: "0 9 * * 1-5", timezone: Europe/Berlin}}
"""


def _apply(wfcore: Call, text: str = BEHIND) -> str:
    said = wfcore("workflow", "apply", "-", "--owner", "ann@example.org", "--json", stdin=text)
    assert said.status == 0, said.err
    return str(said.json["id"])


def test_triggers_are_listed(wfcore: Call, applied: str) -> None:
    """With their definition, state, next instant and number of runs; also by workflow."""
    id = _apply(wfcore)
    listed = wfcore("trigger", "list", "--json").json
    assert listed["total"] == 2
    by_kind = {one["kind"]: one for one in listed["items"]}
    chain, schedule = by_kind["DELAYED_COMPLETION"], by_kind["SCHEDULE"]
    assert chain == {
        **chain,
        "workflowId": id,
        "definition": {
            "kind": "DELAYED_COMPLETION",
            "workflow": "Greet",
            "on": ["COMPLETED"],
            "delaySeconds": 60,
            "maxRuns": 3,
        },
        "state": "ACTIVE",
        "reason": None,
        "nextRunAt": None,
        "runs": 0,
    }
    assert schedule["definition"]["timezone"] == "Europe/Berlin"
    assert schedule["nextRunAt"] % 3_600_000 == 0
    shown = wfcore("workflow", "show", "Then", "--json").json
    assert {one["id"] for one in shown["triggers"]} == {chain["id"], schedule["id"]}
    assert wfcore("trigger", "list", "--workflow", "Greet", "--json").json["total"] == 0
    assert wfcore("trigger", "list", "--workflow", "Then", "--json").json["total"] == 2
    table = wfcore("trigger", "list").out
    assert "60 s after Greet, 3 times" in table
    assert "0 9 * * 1-5 Europe/Berlin" in table


def test_why_a_trigger_does_not_fire_is_shown(wfcore: Call, applied: str) -> None:
    """After a downgrade the schedule is BLOCKED, and a chain behind nothing is, too."""
    _apply(wfcore)
    wfcore("account", "set", "ann@example.org", "--plan", "FREE")
    wfcore("workflow", "delete", applied)
    listed = wfcore("trigger", "list", "--json").json["items"]
    assert {one["state"] for one in listed} == {"BLOCKED"}
    reasons = sorted(one["reason"] for one in listed)
    assert reasons == [
        "Schedules need the plan PRO or above",
        "The workflow 'Greet' is not there, or not visible any more",
    ]
    assert "Schedules need the plan PRO" in wfcore("trigger", "list").out


def test_what_only_the_store_can_tell_is_told_with_its_line(wfcore: Call) -> None:
    """A schedule on plan FREE and a chain behind nothing: file, line and path; nothing stored."""
    wfcore("account", "set", "ann@example.org", "--plan", "FREE")
    said = wfcore("workflow", "apply", "-", "--owner", "ann@example.org", stdin=BEHIND)
    assert said.status == 1
    first, second = said.err.splitlines()
    assert first == "error: stdin:5: triggers[1]: schedules need the plan PRO or above"
    assert second.startswith("error: stdin:4: triggers[0].workflow: 'Greet' is neither the name")
    assert wfcore("workflow", "list", "--json").json["total"] == 0


def test_triggers_of_a_file_that_is_run_here_are_left_out(wfcore: Call, tmp_path: Path) -> None:
    """`wfcore run` starts a workflow itself, whatever else would."""
    file = tmp_path / "then.yaml"
    file.write_text(BEHIND)
    assert wfcore("run", str(file)).status == 0


def test_missed_runs_are_a_setting() -> None:
    """`WFCORE_MISSED_RUNS` is skip or once, `WFCORE_SCHEDULE_GRACE` a length of time."""
    policy = settings_from({}).policy
    assert (policy.missed, policy.schedule_grace_ms) == (Missed.SKIP, 60_000)
    given = {"WFCORE_MISSED_RUNS": "once", "WFCORE_SCHEDULE_GRACE": "5m"}
    policy = settings_from(given).policy
    assert (policy.missed, policy.schedule_grace_ms) == (Missed.ONCE, 300_000)
    with pytest.raises(InvalidInput, match="must be one of skip, once"):
        settings_from({"WFCORE_MISSED_RUNS": "all"})


def test_a_limit_is_shown(wfcore: Call) -> None:
    """`workflow show` says in a line how many run at once, and what becomes of others. CC-5."""
    _apply(wfcore, f"name: One\nconcurrency: {{limit: 2, onLimit: skip}}\n{STEP}")
    assert "at once      2, others skip" in wfcore("workflow", "show", "One").out
