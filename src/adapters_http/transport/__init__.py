"""HTTP/1.1 on the socket: the protocol of uvicorn, hardened."""
