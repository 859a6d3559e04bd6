"""A chaos monkey: kills members and the operator at random, and reports whether everything survived it.

Promises: the same seed injects the same faults in the same order into the same members by their rank; no
cluster gets a fault while it is not whole, nor one that costs its quorum, unless that is requested; whatever
was frozen, stopped or cut is mended before the end; the verdict comes from etcd and from the operator's log,
not from status alone. It makes clusters of its own and injects no faults into others; an operator or a
node with a fault serves others too.

`options`, `schedule`, `targets`, `verdict` and the scan in `logs` are pure; `clusters`, `health`, `operators`
and `logs` observe; `injector` injects faults when `dispatch` allows it; `run` is the loop, `judge` checks
what survived it, `session` is a run from beginning to end, `cli` the command line.
"""
