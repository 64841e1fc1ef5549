"""Approvals: decisions by people, expiry and reminders by time."""
