"""System tests: real Kubernetes, real etcd, the operator as users run it."""
