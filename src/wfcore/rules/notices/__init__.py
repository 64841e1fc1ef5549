"""Notices: their recipients, and how often each is tried."""
