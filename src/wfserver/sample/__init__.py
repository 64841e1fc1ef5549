"""The sample workflow that `wfcore up` installs and `wfcore try` runs."""

from importlib.resources import files

NAME = "Refund review"


def text() -> bytes:
    """The text of the sample's definition."""
    return files(__name__).joinpath("refunds.yaml").read_bytes()
