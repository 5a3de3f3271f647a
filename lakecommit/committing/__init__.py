"""Stage 3: pending epochs, and batch writes, become versions of the table, each exactly once.

Owns the committer's own task, what goes into a version and the one loop that tries it. Deletes nothing. Called by the
service, and by recovering.
"""
