"""Kubernetes manifests as plain dicts: pure, and held against golden files."""
