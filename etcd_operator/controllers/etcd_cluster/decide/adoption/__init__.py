"""How a running etcd cluster is adopted."""
