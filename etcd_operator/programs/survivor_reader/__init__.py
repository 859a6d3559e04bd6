"""Reads the data of a member that restarted without a quorum, beside its etcd, and changes nothing of it."""
