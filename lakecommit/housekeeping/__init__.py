"""Cleaning up behind writers: reads what is there, asks `lakecommit.cleaning` what may go, and deletes it.

Precondition of everything here: the marks are read afresh, before the seals, and those before the manifests.
Postcondition: what was deleted has lost, or is state of what is in the table for good. A deletion that is not confirmed
keeps whatever says what it was: the manifest of a file, the seal of a manifest. Whatever fails can be done again, by
anybody.
"""
