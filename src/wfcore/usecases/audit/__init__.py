"""The audit log: writing, reading, verification and evidence."""
