"""The backup tool: takes backups of one cluster again and again, and serves them over HTTP.

It runs in a pod without rights. `client` is the operator's side of it, and imports none of the others.
"""
