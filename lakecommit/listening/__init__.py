"""How commit listeners are told: beside the commits, in order, at least once."""
