"""
The rule that each kind of violation breaks, with its sentence from `docs/rules.md`.

The kind of a violation is the text before the first colon.
"""

from collections.abc import Mapping

from attrs import frozen


@frozen
class Law:
    """
    A promise: the id of its rule and its sentence. For an invariant of a user the id is `watch`.
    """

    id: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.id}: {self.sentence}"


_EX_1 = Law(
    "EX-1",
    "An accepted execution is stored with its definition as of that moment, before anybody is told "
    "of it: PENDING and due at once, or as far as it came without a worker.",
)
_EX_2 = Law(
    "EX-2",
    "A worker takes a due execution, which is then RUNNING; the worker holds the lease exactly "
    "while any part of the execution runs.",
)
_EX_3 = Law(
    "EX-3",
    "The beginning of a step is recorded before the step starts; a step starts once per attempt, "
    "only after the steps before it, and keeps its result once it has ended.",
)
_EX_9 = Law(
    "EX-9",
    "COMPLETED, FAILED and CANCELLED refuse every further fact with a specific error; nothing "
    "happens after the end.",
)
_EX_11 = Law(
    "EX-11",
    "When a worker dies with a step in flight, the execution is INTERRUPTED; a running loop "
    "detects it, not only a start of the server.",
)
_EX_16 = Law(
    "EX-16",
    "A worker that has lost its lease can change nothing any more: its fencing number is out of "
    "date.",
)
_EX_19 = Law(
    "EX-19",
    "The stored record itself determines what must happen next: a due instant, a worker, or an "
    "open approval.",
)
_EX_20 = Law(
    "EX-20",
    "The events of an execution are numbered from 1 without gaps, report every change of status, "
    "and end with the terminal one.",
)
_AP_4 = Law(
    "AP-4",
    "From `expiresAt` on, and not a millisecond earlier, it counts as rejected, whether or not a "
    "timer has fired.",
)
_AP_6 = Law(
    "AP-6",
    "Of any number of concurrent decisions exactly one wins; a decided approval never changes.",
)
_PL_3 = Law("PL-3", "An account and its email are one approver, whichever way each yes came.")
_ST_4 = Law(
    "ST-4", "An execution stays with the worker that holds it until its lease is over or it dies."
)
_AP_36 = Law(
    "AP-36",
    "If `delegable`, an approver may let somebody else decide until an instant; the two are "
    "one voice, what the approver may not do the other may not either, and history and audit "
    "say so.",
)
_ML_1 = Law(
    "ML-1",
    "A `mail` step writes its mail as a due row in the unit in which it begins, then waits "
    "as a delay does. It ends in the unit that records the mail server's answer: completed "
    "if the message was taken for anybody, failed after a refusal, after the last attempt, "
    "or where no mail is set up. All attempts have one `Message-ID`; a redrive has another.",
)
_SV_3 = Law(
    "SV-3",
    "The JSON object that a code step writes to `WF_STATE` is taken in the transaction that "
    "stores its result COMPLETED, and in no other case. It is merged, name by name, and null "
    "puts a name back to its default. A name that is not declared, another type, more than 64 "
    "KiB of JSON in a value or 1 MiB in all of them fails the step by name. Of two writers of "
    "a name the later commit counts.",
)
_EX_35 = Law(
    "EX-35",
    "A redrive begins at the first step without a result to keep, or at a step outside of"
    " loops that every step before it allows; with the definition of the old execution or"
    " the newest one, with its inputs or others. Its plan says of each step whether it is"
    " kept, asked again, runs again (and how often it had begun), is new or gone; what is"
    " kept never runs. A digest of the plan is refused once the plan is another one. "
    "Artifacts of kept steps become the new execution's own. Secret inputs go along only "
    "for the account that gave them.",
)
LAWS: Mapping[str, Law] = {
    "after the end": _EX_9,
    "another message": _ML_1,
    "another answer": Law(
        "IK-1",
        "The same `Idempotency-Key` of the same caller for the same target within 24 h returns "
        "the first answer and starts nothing.",
    ),
    "asked twice": Law(
        "BU-4",
        "Steps of one execution that reach a spent budget wait for the same approval: approving "
        "lets all of them go on, rejecting cancels the execution.",
    ),
    "asks after the end": Law(
        "AP-5", "When its execution ends for another reason, an open approval is CANCELLED."
    ),
    "began again": Law(
        "EX-14",
        "An execution started by API or webhook is never resumed, nor is any that it started: a "
        "step of theirs that was in flight when its worker died is never begun again.",
    ),
    "cancel undone": Law(
        "EX-7",
        "Any execution that has not ended can be cancelled, at once: its steps, timers and "
        "approvals end with it, and late results are dropped.",
    ),
    "completion forgotten": Law(
        "CH-1",
        "A chain starts exactly once for each end that it follows, by default each completion of "
        "the workflow it waits for, and not before its delay is over.",
    ),
    "decided alone": Law(
        "EX-5",
        "An approval lets the execution continue; the released rows are the step's output.",
    ),
    "decided late": _AP_4,
    "decided twice": _AP_6,
    "decision undone": _AP_6,
    "defect": Law(
        "ST-5",
        "Whatever fails around it, each operation ends with a result or with a documented error.",
    ),
    "events": _EX_20,
    "expired early": _AP_4,
    "fence": _EX_16,
    "forgotten": _EX_19,
    "ghost": _EX_3,
    "group too full": Law(
        "CC-1",
        "At most as many executions of a workflow as its limit allows hold a slot at once, and all "
        "of them get their turn in the order in which they were accepted.",
    ),
    "interrupted for nothing": _EX_11,
    "invariant": Law("watch", "An invariant of your own."),
    "kept step ran": _EX_35,
    "kept wrongly": _EX_35,
    "late result": _EX_16,
    "redriven twice": _EX_35,
    "wrong files": Law(
        "FI-2",
        "A step reads the artifacts of each listed step's last attempt in the present "
        "round, also of a tolerated failure, on any machine, resumed and redriven; "
        "results that were put aside do not count.",
    ),
    "lease unheeded": _ST_4,
    "lost update": Law(
        "ST-1",
        "Of concurrent changes of one record one wins; the others get Stale, and nothing of their "
        "units of work is visible.",
    ),
    "no end": Law(
        "ST-2",
        "When nothing fails any more, every accepted execution ends, or waits for a person or an "
        "instant.",
    ),
    "no such move": _EX_20,
    "not recorded": _EX_3,
    "place kept": _EX_2,
    "quota overrun": Law(
        "RL-4",
        "Admitted requests count, whatever their outcome, and a window admits exactly the limit.",
    ),
    "ran backwards": Law(
        "EX-30",
        "Work follows a clock that never goes back: due, delayed and retried work continues when "
        "the wall clock is set back, also over a restart, and no duration is negative.",
    ),
    "result changed": _EX_3,
    "result without state": _SV_3,
    "started without its inputs": Law(
        "SH-12",
        "The inputs of a trigger are templates over `trigger` and `state`, evaluated as it "
        "fires. What the text shows to be wrong is refused when the definition is applied; "
        "inputs that do not fit at the fire start nothing, are not tried again, are audited, "
        "told to the owner and shown with the trigger, and count as a failure and not as a run.",
    ),
    "started twice": _EX_3,
    "state without result": _SV_3,
    "taken away": _ST_4,
    "too many places": Law("ST-3", "A worker holds at most as many executions as it has slots."),
    "too many rounds": Law(
        "AP-31",
        "Asking for changes puts the results from the step of `onRevise` on aside and runs these "
        "steps again, at most `max` times; each round asks by an approval of its own.",
    ),
    "too many runs": Law(
        "CH-3",
        "`maxRuns` limits the total number of starts of a chain; after that it starts nothing.",
    ),
    "too many webhooks": Law(
        "WH-4",
        "A webhook can be created or enabled only if it is among the account's oldest, active or "
        "not, as many as the plan allows; otherwise 409.",
    ),
    "delegated too long": _AP_36,
    "retried early": Law(
        "DF-9",
        "`retry` counts all attempts; the wait after the n-th failure is `delay * backoff^(n-1)` "
        "plus up to a quarter, at most a day. The extra part is drawn anew for each attempt, and "
        "is the same no matter who computes it.",
    ),
    "told wrongly": Law(
        "AP-16",
        "An approver counts once: approving again is refused like any further decision and changes "
        "nothing; the same person may still reject.",
    ),
    "too many branches": Law(
        "FL-3",
        "At most `maxParallel` branches or rounds are in progress, and at most 10 steps of one "
        "execution run at once.",
    ),
    "escalated twice": Law(
        "AP-37",
        "If `escalate` says so and nobody has decided `after` that time, the accounts `to` are "
        "asked, too, exactly once, over any restart.",
    ),
    "mailed in vain": Law(
        "ML-3",
        "A mail that was not handed over is dropped once its step does not wait for it any more.",
    ),
    "mailed twice": _ML_1,
    "never mailed": _ML_1,
    "never told": Law(
        "NT-1",
        "A notice is written in the unit of the fact that it tells; its id is made of fact, "
        "channel and address, so a fact is told once at each address.",
    ),
    "stood in too long": _AP_36,
    "told in vain": Law(
        "NT-5",
        "What asks for a decision is dropped if it was decided, or its reader has agreed or is not "
        "asked any more, before it was sent.",
    ),
    "told twice": Law(
        "NT-4",
        "Each attempt is recorded before it is made, and again under the same id: after 1, 5 and "
        "30 minutes and 2 hours; after the fifth, or where the other side refuses for good, it is "
        "given up, which the open execution's history and the operators see.",
    ),
    "too few": Law(
        "AP-33",
        "`stages` are asked one after another: only the approvers of the present stage decide, a "
        "stage is over with its `requiredApprovals`, a person counts once over all stages, and "
        "changed rows begin with the first stage again.",
    ),
    "two voices": _PL_3,
    "verdict changed": Law(
        "EX-31",
        "An execution that is going to fail first runs the `onFailure` steps of its definition, "
        "once, with `error` in scope; whatever becomes of them, it then is FAILED with the error "
        "that it had.",
    ),
    "unknown": _EX_1,
    "untold": _EX_20,
    "waits for nobody": _EX_19,
}


def violation_kind(broken: str | None) -> str:
    """The kind of a violation: the text before the first colon."""
    return (broken or "").partition(":")[0]


def law_of(broken: str | None) -> Law:
    """The promise that a violation breaks."""
    return LAWS.get(violation_kind(broken), LAWS["defect"])
