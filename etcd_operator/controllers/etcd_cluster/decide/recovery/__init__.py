"""What is done where a quorum is lost for good, or a person gives up a cluster's data for a backup.

observed, acts      values: what is observed for a recovery, and the steps of one
entry, texts        the entry of a recovery in status, and in words
situation, offline  who answers, what may be left, and what is read of members that answer nobody
authority, source   when silent members are given up without a person; which data is restored instead
inquiry             when the backup tool is asked what it has, and what counts of its reports
proof, proven, requested, in_place   how a recovery begins: its loss is proven, time passes, or a request
machine, seed_job, ending   an attempt that is under way, and one that ends without a change
rules               what `decide.plan` lists
"""
