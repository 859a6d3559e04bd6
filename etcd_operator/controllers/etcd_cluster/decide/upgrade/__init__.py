"""Taking a cluster from one version of etcd to another: decisions only."""
