"""The objects of members, ephemeral and persistent: one protocol of acts, two implementations.

What rules decide differently is in `decide.kinds`.
"""
