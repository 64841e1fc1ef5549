"""Webhooks: managed, and their last deliveries."""
