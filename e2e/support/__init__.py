"""What system tests and the benchmark share: the test bed, the operator under test, checks.

Nothing here sleeps for a fixed time to let something happen: `waiting.wait_until` waits for a
condition and names what did not come before its deadline.
"""
