"""A Kubernetes operator that runs etcd clusters.

Read `docs/architecture.md` first: watch threads put keys on a queue, workers run one
observe-plan-act pass per cluster, and everything that is decided is decided in `core`.
"""

__version__ = "0.1.0"
