"""
Names of settings and files that programs without a server need as well.

This module imports no other settings, so that a store can be opened without the record of them all.
"""

import os
from pathlib import Path

from wfcore.model.access import Tier

SEAL_KEY = "WFCORE_SEAL_KEY"
FIRST_KEY_FILE = "first.key"
"""The file with the API key that `wfcore up` made, in the data folder that it made."""
CLOCK_FILE = "clock.json"
"""The file that keeps the last times of the clocks, see `SystemClock`."""


def plan_of_new_accounts(folder: Path) -> Tier:
    """
    The plan of new accounts in the data folder *folder* if no setting names one: ENTERPRISE if
    `wfcore up` made the folder, else FREE.
    """
    return Tier.ENTERPRISE if os.path.lexists(folder / FIRST_KEY_FILE) else Tier.FREE
