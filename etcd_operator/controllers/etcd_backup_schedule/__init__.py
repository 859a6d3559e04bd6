"""EtcdBackupSchedules at work: observe, plan, act."""
