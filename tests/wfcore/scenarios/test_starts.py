"""What scenarios start by themselves: schedules, and triggers that fit. DF-11."""

from .conftest import Play, wrong

SCHEDULED = """
name: W
triggers:
  - {kind: SCHEDULE, cron: "30 2 * * *", timezone: Europe/Berlin}
  - {kind: SCHEDULE, cron: "0 12 * * 0", timezone: Europe/Berlin}
steps: [{name: a, kind: delay, duration: 1m}]
"""


def test_schedules_over_daylight_saving(play: Play) -> None:
    """Next runs are those of all schedules; the one that starts the execution really does."""
    ran = play(
        SCHEDULED,
        """
scenarios:
  - name: in spring
    at: 2026-03-28T00:00:00+01:00
    expect:
      nextFires:
        - 2026-03-28T02:30:00+01:00
        - 2026-03-29T03:00:00+02:00
        - 2026-03-29T12:00:00+02:00
        - 2026-03-30T02:30:00+02:00
  - name: it starts itself in autumn
    at: 2026-10-25T01:00:00+02:00
    given: {start: schedule}
    expect: {startedAt: 2026-10-25T02:30:00+02:00, status: COMPLETED, took: 1m}
""",
    )
    assert wrong(ran) == ""


TRIGGERED = """
name: W
variables: {of: {required: true}, rows: {type: array, default: []}}
reference: "{{ trigger.status }}"
steps: [{name: a, kind: data, value: "{{ trigger }}"}]
output: "{{ variables.of }}"
triggers:
  - {kind: SCHEDULE, cron: "0 9 * * *", inputs: {of: "{{ trigger.scheduledFor }}"}}
  - {kind: DELAYED_COMPLETION, workflow: Import, on: [FAILED], inputs: {of: "{{ trigger.status }}"}}
"""


def test_a_scenario_may_be_started_by_a_trigger(play: Play) -> None:
    """
    With the inputs of the trigger that fits, judged as at a fire; further inputs take precedence.
    DF-11, SH-12.
    """
    ran = play(
        TRIGGERED,
        """
scenarios:
  - name: a failure that is followed
    given: {trigger: {kind: delayed_completion, workflowName: Import, status: FAILED}}
    expect: {status: COMPLETED, output: FAILED}
  - name: other inputs
    given: {trigger: {kind: delayed_completion, status: FAILED}, inputs: {of: me}}
    expect: {output: me}
  - name: inputs that do not fit
    given: {trigger: {kind: schedule, scheduledFor: 7}}
    expect: {refused: "inputs.of: must be a string"}
  - name: another end
    given: {trigger: {kind: delayed_completion, status: COMPLETED}}
    expect: {refused: no trigger}
  - name: a webhook gives its own
    given: {trigger: {kind: webhook, webhookId: wh_1}, inputs: {of: hook}}
    expect: {output: hook}
""",
    )
    assert wrong(ran) == ""
