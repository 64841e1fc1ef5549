"""What agents are offered over the Model Context Protocol. Decision 212."""
