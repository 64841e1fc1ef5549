"""The JSON shapes on the wire: requests in, views out, and their schemas."""
