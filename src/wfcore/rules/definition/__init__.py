"""Checking a definition: from a raw document to the model, or all its mistakes."""
