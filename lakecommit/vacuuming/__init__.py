"""Vacuum: deletes the files that no version, lease or writer needs any more, and says which and why.

Owns what goes and what stays, and the candidates on local disk. Knows no format's log, and leaves it to `leases` how
readers are noticed. Called by the command line.
"""
