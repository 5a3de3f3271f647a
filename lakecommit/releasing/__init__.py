"""Stage 4: the files of attempts that have lost are deleted, and an epoch's state goes when nobody needs it any more.

Also looks after versions that other writers write over. Decides by where an epoch stands, never by what is remembered
of it. Called by the service, recovering and the command line.
"""
