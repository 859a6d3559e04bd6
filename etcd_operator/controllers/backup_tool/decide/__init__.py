"""Backups of `coreos.com` clusters by the backup tool: what is decided about its objects, without I/O."""
