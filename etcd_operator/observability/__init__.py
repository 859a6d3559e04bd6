"""What the operator shows of itself: log lines, metrics, and whether it is alive and ready."""
