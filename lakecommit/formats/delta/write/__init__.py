"""Makes what is written to a Delta log: bodies of versions, and what a new table starts with."""
