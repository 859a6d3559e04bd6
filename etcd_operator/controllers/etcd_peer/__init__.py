"""EtcdPeers: observed, acted on and reported, one pass for each."""
