"""Triggers, which start workflows by themselves: schedules, chains, and their conditions."""
