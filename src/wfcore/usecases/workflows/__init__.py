"""Workflows: applying, sharing, and starts by triggers."""
