"""Keys, queues and workers: what makes a reconcile function run, and run again.

Knows nothing of Kubernetes or etcd. Read `controller` first; it is built of `workqueue`
(what is to be done), `delay` (what is to be done later), `backoff` (how much later after a
failure) and `threads` (who does it).
"""
