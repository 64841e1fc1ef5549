"""The audit log as evidence: linked entries, and one file that everybody can check."""
