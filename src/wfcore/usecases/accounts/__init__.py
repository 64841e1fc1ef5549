"""Accounts, their keys and sessions, and the authentication of requests."""
