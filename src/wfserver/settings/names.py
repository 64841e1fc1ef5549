"""
Names of settings and files that programs without a server need as well.

This module imports nothing, so that a store can be opened without the record of all settings.
"""

SEAL_KEY = "WFCORE_SEAL_KEY"
FIRST_KEY_FILE = "first.key"
"""The file with the API key that `wfcore up` made, in the data folder that it made."""
CLOCK_FILE = "clock.json"
"""The file that keeps the last times of the clocks, see `SystemClock`."""
