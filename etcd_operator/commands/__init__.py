"""The commands of `etcd-operator`, one module each: `add_arguments(parser)` and `run(options)`.

What they share: flags (`endpoints`, `members`, `flags`), URLs of backups and names of new ones (`places`),
exit codes and output (`outcome`), and `progress`.

All of them are imported at each start, so they import what is large only when they run.
"""
