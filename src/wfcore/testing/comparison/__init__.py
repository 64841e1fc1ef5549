"""Your store compared with the one in memory: the same requests, the same answers."""
