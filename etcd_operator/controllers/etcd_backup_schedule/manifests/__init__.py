"""What an EtcdBackupSchedule creates."""
