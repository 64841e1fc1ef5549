"""
What the core asks of the outside, as Protocols: one file for each port, however small. Adapters
satisfy them; contracts test them.
"""
