"""The two kinds of member, ephemeral and persistent, behind one protocol: all that rules decide differently.

A rule asks `state.kind`; it never asks which kind that is. What is done differently to Kubernetes objects is
in `etcd_cluster.members`.
"""
