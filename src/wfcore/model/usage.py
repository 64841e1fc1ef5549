"""What AI calls consumed. Contract §2."""

from attrs import frozen


@frozen
class Usage:
    """Tokens and cost. `cost_usd` is a decimal string, None when a price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: str | None = "0"
