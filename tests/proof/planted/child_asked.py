"""Recovery asks what started a child, and not what started the root of its family. EX-24."""

from wfcore.model.execution import Execution, TriggerSource


def plant() -> None:
    def asked(run: Execution) -> TriggerSource:
        by_parent = run.trigger_source is TriggerSource.WORKFLOW
        return TriggerSource.MANUAL if by_parent else run.trigger_source

    Execution.root_trigger = property(asked)  # type: ignore[assignment, method-assign]
