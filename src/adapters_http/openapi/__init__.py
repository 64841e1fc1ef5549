"""The OpenAPI document: made from the table of routes, with examples that are data."""
