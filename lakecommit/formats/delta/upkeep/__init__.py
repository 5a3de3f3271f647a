"""Keeps a Delta log short: writes checkpoints, and deletes what expired before them."""
