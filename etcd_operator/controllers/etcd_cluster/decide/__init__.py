"""What to do next, decided from values alone.

`plan(state)` decides from the observed state of a cluster which actions to take, what to
wait for and why. Nothing here does I/O, reads a clock or draws a random number:
time and random names come in as values, so every decision can be tabled and replayed.
"""
