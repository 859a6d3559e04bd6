"""One fake etcd: what the operator relies on, as unit/etcd/contract shows it of this and of the real one.

rules.py       when etcd refuses a change of its members: pure, shared with the random model of unit/core
refusals.py    how it refuses a call, or a start
member.py      one member
cluster.py     the members of one cluster: their processes, leader, data and alarms
auth.py        its users and roles, and what each caller may call
calls.py       what is known of each call
rpc.py         its gRPC face: one server for each running member
auth_rpc.py    the calls about users and roles
metrics.py     the metrics page of one member
launcher.py    from flags and data directories to members of clusters, or to a refused start
"""
