"""The operations of operators, on the host of the service or from elsewhere. Decision 187."""
