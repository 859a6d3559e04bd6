"""What system tests and the benchmark stand on: the test bed, the operator under test, checks that all share.

Nothing here sleeps for a fixed time to let something happen: `waiting.wait_until` waits for a
condition and says what it waited for when the deadline is over.
"""
