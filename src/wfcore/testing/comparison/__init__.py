"""The comparison of a store with the store in memory: the same requests, the same answers."""
