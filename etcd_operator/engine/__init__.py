"""Keys, queues and workers: what runs a reconcile function, and runs it again.

Knows nothing of Kubernetes or etcd. Read `controller` first; its parts are `workqueue` (keys that are due),
`delay` (keys that become due later), `backoff` (how much later after a failure), `worker_pool` (the workers)
and `threads`.
"""
