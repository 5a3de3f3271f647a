"""Waiting and doing several things at once: signals, pauses between tries, background work, bounded parallelism.

Owns no state of the protocol and knows none of its words. Everybody may call it.
"""
