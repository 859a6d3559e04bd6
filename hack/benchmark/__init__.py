"""Measures what the operator costs: against the floor (no operator at all) and against budgets.

Everything is measured on a real Kubernetes with a real etcd, in one run and alternating, so that
ratios mean something also on a machine that is busy with other things.
"""
