"""Webhooks: their management, and their last deliveries."""
