"""Approvals: decided by people, expired and reminded by time."""
