"""What is read of a cluster: caches, and the replies of its members."""
