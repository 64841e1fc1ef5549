"""Webhooks: their machine, the senders' signatures, and statistics."""
