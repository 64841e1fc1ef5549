"""The calendar of the kill loop: its servers live for a second, and cron counts minutes."""

from datetime import datetime, timedelta

from adapters_runtime.cron import CronCalendar

PERIOD_S = 2


class Often(CronCalendar):
    """Whatever an expression says, it names every even second."""

    def next_local(self, cron: str, after: datetime) -> datetime | None:
        whole = after.replace(microsecond=0)
        return whole + timedelta(seconds=PERIOD_S - whole.second % PERIOD_S)
