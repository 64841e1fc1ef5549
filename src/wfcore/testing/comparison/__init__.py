"""Your store beside the one in memory: the same requests, the same answers."""
