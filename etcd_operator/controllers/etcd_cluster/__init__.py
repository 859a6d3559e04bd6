"""EtcdClusters of both groups: one pass observes, plans, acts, and writes the status."""
