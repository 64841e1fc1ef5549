"""The store for several machines: PostgreSQL. Decisions 154-159."""
