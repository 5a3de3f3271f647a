"""What the committer knows: how far each query and its run are, the table as it was last seen, what is pending.

Tables of transitions, pure but for the spill to local disk; all of it can be read again from the store. Does not read
the store by itself: that is `restarting`. Called by the stages that follow.
"""
