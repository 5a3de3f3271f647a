"""The verbs of the command line: each module here is the verb of its name, and has it as `command`.

A verb with several subjects is a package. `cli/main.py` finds them by looking here, so that a verb is one place.
"""
