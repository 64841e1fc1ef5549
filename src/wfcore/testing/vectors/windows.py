"""Vectors of quotas: the windows of an instant, the verdict on a count, and plans."""

from typing import Any

from wfcore.errors import RateLimited
from wfcore.model.access import Admission, Tier, Window
from wfcore.rules.auth.rate_limit import verdict, windows
from wfcore.rules.limits import REQUESTS, WEBHOOKS_PER_ACCOUNT
from wfcore.time import EpochMs

ABOUT = (
    "Rate limits: a window of a minute, aligned to the epoch minute, and one of a day by UTC "
    "date. Instants are epoch milliseconds; a window holds its start and not its end."
)
NOON = 1_767_268_800_000
"""2026-01-01T12:00:00Z."""
MIDNIGHT = 1_767_312_000_000
"""2026-01-02T00:00:00Z."""
INSTANTS = {
    "noon": {"plan": "FREE", "nowMs": NOON},
    "in the middle of a minute": {"plan": "PRO", "nowMs": NOON + 12_345},
    "the last millisecond of a day": {"plan": "TEAM", "nowMs": MIDNIGHT - 1},
    "the first millisecond of a day": {"plan": "TEAM", "nowMs": MIDNIGHT},
    "the epoch": {"plan": "ENTERPRISE", "nowMs": 0},
    "a day without end of quota": {"plan": "ENTERPRISE", "nowMs": NOON},
}


def _asked(plan: str, minute: int, day: int, now: int = NOON + 15_500) -> dict[str, Any]:
    return {"plan": plan, "nowMs": now, "minuteCount": minute, "dayCount": day}


COUNTS = {
    "the first request": _asked("FREE", 0, 0),
    "the last one of a minute": _asked("FREE", 59, 100),
    "one too many for a minute": _asked("FREE", 60, 100),
    "the last one of a day": _asked("FREE", 10, 1_999),
    "one too many for a day": _asked("FREE", 10, 2_000),
    "both are full": _asked("FREE", 60, 2_000),
    "the day is tighter": _asked("PRO", 0, 49_999),
    "no limit by day": _asked("ENTERPRISE", 5_998, 9_999_999),
    "at the last millisecond of a window": _asked("PRO", 300, 300, NOON + 59_999),
    "at the first millisecond of a window": _asked("PRO", 300, 300, NOON),
}
PLANS = {plan.value: {"plan": plan.value} for plan in Tier}


def _shown(window: Window) -> Any:
    return {"startMs": window.start, "endMs": window.end, "limit": window.limit}


def _windows(given: Any) -> Any:
    minute, day = windows(Tier(given["plan"]), EpochMs(given["nowMs"]))
    return {"minute": _shown(minute), "day": _shown(day)}


def _verdict(given: Any) -> Any:
    now = EpochMs(given["nowMs"])
    asked = windows(Tier(given["plan"]), now)
    before = (given["minuteCount"], given["dayCount"])
    full = tuple(
        window.kind
        for window, count in zip(asked, before, strict=True)
        if window.limit is not None and count >= window.limit
    )
    counts = before if full else tuple(count + 1 for count in before)
    try:
        quota = verdict(asked=asked, taken=Admission(full, counts), now=now)
    except RateLimited as refused:
        return {
            "status": 429,
            "window": refused.window,
            "limit": refused.limit,
            "retryAfterSeconds": refused.retry_after_s,
        }
    return {"limit": quota.limit, "remaining": quota.remaining, "window": quota.window}


def _limits(given: Any) -> Any:
    plan = Tier(given["plan"])
    minute, day = REQUESTS[plan]
    return {"perMinute": minute, "perDay": day, "webhooks": WEBHOOKS_PER_ACCOUNT[plan]}


GROUPS = {
    "windows": ("The two windows of an instant.", INSTANTS, _windows),
    "quota": ("What one more request gets, after so many in both windows.", COUNTS, _verdict),
    "limits": ("What the plans allow; null: any number.", PLANS, _limits),
}
