"""What is known of the mutants of the rules, and the page that tells it."""
