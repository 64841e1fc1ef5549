"""The tools that agents can use over the Model Context Protocol. Decision 212."""
