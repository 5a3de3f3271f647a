"""`lakecommit VERB`: each verb shows what it found, on a console and as JSON, and destroys only with `--apply`.

Holds no decision of the protocol. Called by people and their scripts.
"""
