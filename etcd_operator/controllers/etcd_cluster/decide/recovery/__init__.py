"""What is done where a quorum is lost for good, or a person gives up a cluster's data for a backup.

observed, acts      values: what is observed for a recovery, and the steps of one
entry, texts        the entry of a recovery in status, and in words
situation, offline  who answers, what may be left, and what is read of members that answer nobody
authority, source   on whose authority members are given up; which data is restored instead
proven, requested, in_place   how a recovery begins: the loss is proven, or a person requests it
machine, ending     an attempt that is under way, and one that ends without a change
rules               what `decide.plan` lists
"""
