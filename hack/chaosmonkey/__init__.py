"""A chaos monkey: kills members and the operator at random, and says whether everything survived it.

Promises: the same seed strikes in the same order at the same members by their rank; no cluster is struck
while it is not whole, and never so that its quorum is lost, unless that is asked for; whatever was frozen,
stopped or cut is mended before the end; the verdict comes from etcd's own word and from the operator's log,
not from status alone. It makes clusters of its own and strikes no others; an operator or a node that it
strikes serves others too.

`schedule`, `victims`, `verdict` and the scan in `logs` are pure; `health`, `operators` and `logs` watch;
`deeds` breaks things; `run` is the loop, `judge` what is asked after it, `cli` the command line.
"""
