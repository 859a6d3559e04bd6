"""How a cluster is taken from one version of etcd to another: decisions only."""
