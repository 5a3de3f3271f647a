"""Commit listeners: told of every snapshot, after it, at least once and in order, with durable places.

Never holds up a commit. Does not decide what is released; it only says how far everybody was told. Called by the
service.
"""
