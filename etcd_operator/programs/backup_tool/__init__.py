"""The backup tool: takes backups of one cluster again and again, and serves them over HTTP.

It runs in a pod without rights. The operator's side of it is `pods.client`.
"""
