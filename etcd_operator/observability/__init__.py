"""Logs, metrics, and the status pages (alive, ready) of the operator itself."""
