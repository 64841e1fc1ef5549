"""The numbers of the specification, said a second time."""

import pytest

from wfcore.rules import limits


@pytest.mark.parametrize(
    ("number", "wanted"),
    [
        pytest.param(limits.TRIGGER_BODY, 1_048_576, id="LM-1: 1 MB"),
        pytest.param(limits.APPROVAL_BODY, 65_536, id="LM-2: 64 KB"),
        pytest.param(limits.JSON_DEPTH, 64, id="LM-3: 64 deep"),
        pytest.param(limits.MAX_APPROVAL_ROWS, 10_000, id="LM-7: rows of a group"),
        pytest.param(limits.EDITED_ROWS_BODY, 4 * 1_048_576, id="LM-10: 4 MB of edited rows"),
        pytest.param(limits.DATA_RESULT, 16 * 1_048_576, id="LM-10: 16 MB of rows"),
        pytest.param(limits.TEXT_RESULT, 1_048_576, id="LM-10: 1 MB from a template"),
        pytest.param(limits.MAX_NAME, 200, id="LM-8: a name"),
        pytest.param(limits.ARTIFACT_BYTES, 100 * 1_048_576, id="LM-9: 100 MB"),
        pytest.param(limits.ARTIFACTS_PER_EXECUTION, 200, id="LM-9: 200 files"),
        pytest.param(limits.DOWNLOAD_LINK, 15 * 60_000, id="AR-2: 15 minutes"),
        pytest.param(limits.ROTATION_OVERLAP, 24 * 3_600_000, id="AU-7: 24 h"),
        pytest.param(limits.REPLAY_WINDOW, 24 * 3_600_000, id="IK-1: 24 h"),
    ],
)
def test_a_limit_is_the_number_of_the_specification(number, wanted):
    """A slip of the finger in a constant is a failing test."""
    assert number == wanted
