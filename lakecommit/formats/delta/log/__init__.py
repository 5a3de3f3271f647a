"""Reads a Delta log: its names and actions, the newest state, and what it says of files, queries and vacuums."""
