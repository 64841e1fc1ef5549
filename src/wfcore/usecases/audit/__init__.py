"""The audit log: written, read, verified, and turned into evidence."""
