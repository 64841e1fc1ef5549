"""AI steps: two wire protocols, prices, JSON Schema. Needs the libraries of the extra `ai`."""

from importlib.util import find_spec

from wfcore.installed import install

CURE = install("ai")
UNAVAILABLE = f"AI steps cannot run here: {CURE}"

_NEEDED = ("genai_prices", "jsonschema_rs")


def is_available() -> bool:
    """Whether the libraries of AI steps are installed."""
    return all(find_spec(name) is not None for name in _NEEDED)
