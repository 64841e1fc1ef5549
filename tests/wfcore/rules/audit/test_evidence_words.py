"""What is wrong with evidence that somebody changed is told in words. AL-6."""

import pytest

from wfcore.rules.audit.evidence import FORMAT, Unfit, read_evidence, sealed

POINT = {"number": 0, "hash": "0" * 64}
EMPTY = {
    "executionId": "exec_1",
    "approvals": [],
    "audit": {"chain": "c", "after": POINT, "links": [], "end": POINT},
}
WHOLE = sealed(EMPTY)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            WHOLE.replace("exec_1", "exec_2"),
            "something outside the audit entries was changed: the hash is another one",
        ),
        (f"{WHOLE} ", "it is not written as wfcore writes it: something was added or moved"),
        (WHOLE.replace(FORMAT, "other"), f"the format is not {FORMAT}"),
    ],
)
def test_a_change_is_told_in_words(text: str, said: str) -> None:
    """Whoever checks a document learns where to look."""
    assert read_evidence(WHOLE)["executionId"] == "exec_1"
    with pytest.raises(Unfit) as unfit:
        read_evidence(text)
    assert str(unfit.value) == said
