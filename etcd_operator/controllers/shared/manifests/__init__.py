"""Parts of manifests that several controllers share."""
