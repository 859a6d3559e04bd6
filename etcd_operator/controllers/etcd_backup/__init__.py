"""EtcdBackups at work: observe, plan, act."""
