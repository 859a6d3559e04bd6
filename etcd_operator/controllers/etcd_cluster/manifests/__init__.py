"""Kubernetes manifests as plain dicts: pure, and tested against golden files."""
