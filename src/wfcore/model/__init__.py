"""Frozen records: what the domain knows. No behaviour beyond what a value can say of itself."""
