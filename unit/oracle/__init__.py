"""The oracle: states of clusters, each with the plan that was made for it, show that no decision changes.

`python -m unit.oracle record FILE` collects them from the simulations and the scenario tests, and
`python -m unit.oracle replay FILE` plans for each state again. Their text names classes and fields, and no
module, so it survives moves; `mapping` says what else has changed since the recording.
"""
