"""Mutation testing: `make mutation`, `make mutation-adapters`; docs/mutation.md is its page."""
