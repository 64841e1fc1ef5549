"""What nobody asks for: sweeping, retention, the audit log."""
