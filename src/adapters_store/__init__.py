"""Stores: where records, counters and artifact files are kept."""
