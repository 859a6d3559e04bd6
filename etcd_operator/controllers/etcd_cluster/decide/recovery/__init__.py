"""How a cluster without a quorum is recovered, and how a backup is restored in place."""
