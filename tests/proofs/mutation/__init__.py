"""Mutation testing: `make mutation`; docs/mutation.md is its page."""
