"""The sample workflow that `wfcore up` installs and `wfcore try` runs."""

from importlib.resources import files

NAME = "Refund review"


def text() -> bytes:
    """The sample's definition as it is written."""
    return files(__name__).joinpath("refunds.yaml").read_bytes()
