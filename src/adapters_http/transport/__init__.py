"""HTTP/1.1 on the socket: uvicorn's protocol, hardened."""
