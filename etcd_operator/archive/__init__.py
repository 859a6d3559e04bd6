"""Backups of an etcd database: what is stored, how it is read back, and what proves it whole.

Knows nothing of Kubernetes: the same code runs on the command line and in Jobs.
"""
