"""AI steps: providers over their wire protocols, prices, and the steps that ask them."""
