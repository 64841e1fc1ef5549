"""Authentication and access: credentials, sessions, rights, signed links, rate limits."""
