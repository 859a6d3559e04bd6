"""The Jobs of an EtcdBackup."""
