"""The rules alone: no event loop, no store, no clock. The life of an execution in ten lines."""

from wfcore import (
    CodeStep,
    Definition,
    EpochMs,
    Language,
    Start,
    TriggerSource,
    Workflow,
    accept,
    advance,
    windows,
)
from wfcore.accounts import Tier
from wfcore.errors import IllegalMove
from wfcore.rules.execution import machine as facts

now = EpochMs(1_700_000_000_000)
hello = Definition("hello", (CodeStep("greet", Language.BASH, "echo hello"),), ())
workflow = Workflow("wf_1", "hello", "acc_1", revision=1, created_at=now, updated_at=now)
start = Start(owner_id="acc_1", trigger_source=TriggerSource.MANUAL)
run = accept(workflow, hello, start, "exec_1", now).record
for fact in (facts.Claimed(), facts.StepBegun("greet"), facts.StepDone("greet", "hello")):
    run = advance(run, fact, now).record
run = advance(run, facts.Finished("hello"), now).record
print(run.status, run.output)
try:
    advance(run, facts.CancelAsked(), now)
except IllegalMove as refusal:
    print(refusal)
print([(window.kind, window.limit) for window in windows(Tier.PRO, now)])
