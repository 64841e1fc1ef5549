"""The duties without a caller: sweeping, deletion of old records, orphaned files."""
