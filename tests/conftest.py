"""Shared by all tests: how deep Hypothesis digs, and what a pytest inside of a test leaves out."""

import os

from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=30,
    phases=[phase for phase in Phase if phase is not Phase.explain],  # minutes, for a long script
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(  # for mutants: few examples, and none made smaller
    "quick",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=25,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
settings.register_profile(
    "deep", deadline=None, max_examples=2_000, suppress_health_check=[HealthCheck.too_slow]
)
os.environ["PYTEST_ADDOPTS"] = "-p no:schemathesis -p no:anyio"  # a second of each start
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
