"""What commands share: options, output, tables, the row editor."""
