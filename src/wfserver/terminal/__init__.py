"""The parts that commands share: options, output, the store or server, and the row editor."""
