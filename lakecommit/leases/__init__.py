"""Leases: promises to readers that the files of a version, and of all later ones, stay; and how a vacuum honours them.

Takes, renews and releases leases, says who holds what, and has the vacuum's side of the agreement, the guarded cut.
Deletes no data file, and asks a format only for its versions. Called by readers, by whoever deletes files or log, and
by the command line.
"""
