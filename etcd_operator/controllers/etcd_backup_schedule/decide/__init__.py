"""EtcdBackupSchedules: what is decided about one, without I/O."""
