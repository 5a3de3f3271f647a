"""The Delta format: a lean, blind append to Delta tables."""
