"""What people let go is what they were asked about, whatever they have made of it. AP-7."""

from wfcore.model.approval import Approval
from wfcore.model.json import JsonObject
from wfcore.usecases.approvals import deciding


def plant() -> None:
    whole = deciding.step_output

    def original(decided: Approval) -> JsonObject:
        output, before = whole(decided), decided.history[-1].rows_before
        if before is None:
            return output
        return {**output, "groups": {name: list(rows) for name, rows in before.items()}}

    deciding.step_output = original
