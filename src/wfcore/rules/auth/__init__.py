"""Who may do what: credentials, sessions, access, signatures, rate limits."""
