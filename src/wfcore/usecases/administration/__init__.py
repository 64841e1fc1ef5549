"""What operators ask of the service, from its host or from elsewhere. Decision 187."""
