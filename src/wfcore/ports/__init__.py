"""What the core asks of the outside, as Protocols. Adapters satisfy them; contracts test them."""
