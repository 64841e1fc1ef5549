"""Workflows: applied, shared, and started by their triggers."""
