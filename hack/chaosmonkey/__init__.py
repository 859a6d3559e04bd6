"""A chaos monkey: kills members and the operator at random, and reports whether everything survived it.

Promises: the same seed strikes in the same order at the same members by their rank; no cluster is struck
while it is not whole, and never so that its quorum is lost, unless that is requested; whatever was frozen,
stopped or cut is mended before the end; the verdict comes from etcd and from the operator's log, not from
status alone. It makes clusters of its own and strikes no others; an operator or a node that it
strikes serves others too.

`options`, `schedule`, `victims`, `verdict` and the scan in `logs` are pure; `clusters`, `health`, `operators`
and `logs` observe; `deeds` breaks things when `striking` allows it; `run` is the loop, `judge` checks what
survived it, `session` is a run from beginning to end, `cli` the command line.
"""
