"""Accounts, their keys and sessions, and who a request comes from."""
