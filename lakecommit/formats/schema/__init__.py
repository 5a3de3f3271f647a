"""What every format asks of schemas: their fields, and whether rows of one fit a table of another."""
