"""The rules alone: no loop, no store, no clock. Ten lines of an execution's life."""

from wfcore.errors import IllegalMove
from wfcore.instants import EpochMs
from wfcore.model.access import Plan
from wfcore.model.execution import TriggerSource
from wfcore.model.workflow import CodeStep, Definition, Language, Workflow
from wfcore.rules import execution_machine as facts
from wfcore.rules.execution import advance
from wfcore.rules.rate import windows
from wfcore.rules.start import Start, accept

now = EpochMs(1_700_000_000_000)
workflow = Workflow("wf_1", "hello", "acc_1", 1, now, now)
definition = Definition("hello", (CodeStep("greet", Language.BASH, "echo hello"),), ())

run = accept(workflow, definition, Start("acc_1", TriggerSource.MANUAL), "exec_1", now).record
for fact in (facts.Claimed(), facts.StepBegun("greet"), facts.StepDone("greet", "hello")):
    run = advance(run, fact, now).record
run = advance(run, facts.Finished("hello"), now).record
print(run.status, run.output)

try:
    advance(run, facts.CancelAsked(), now)
except IllegalMove as refusal:
    print(refusal)

print([(window.kind, window.limit) for window in windows(Plan.PRO, now)])
