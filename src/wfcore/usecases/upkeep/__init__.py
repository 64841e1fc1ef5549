"""The duties that no caller requests: sweeping, deletion of old records, orphaned files."""
