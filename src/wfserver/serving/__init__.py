"""The server: sockets, processes, start and stop, the engine, metrics and traces."""
