"""Stage 0: the one reader of marks, seals and manifests, from which what is pending is known again.

Says what is wrong with a query's state and what to do. Commits and deletes nothing. Called by sealing, committing and
recovering.
"""
