"""EtcdRestores at work: observe, plan, act."""
