"""The objects that are made for EtcdUsers."""
