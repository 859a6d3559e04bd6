"""The objects of a backup tool."""
