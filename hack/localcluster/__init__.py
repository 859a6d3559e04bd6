"""A real Kubernetes on one Linux machine, made of processes and network namespaces.

Why it exists: every promise of the operator is checked on real etcd run by a real Kubernetes, and neither
a container engine nor an image registry can be counted on where developers and CI work. Everything here is
built from Go modules and Debian packages, so a plain machine is enough.

What it promises:

- `up` and `down` may be repeated, and may be killed at any moment: the next call makes it right.
- `down` leaves nothing behind: no process, namespace, link, route, mount or cgroup.
- No packet leaves the machine: no namespace has a route out.
- Only processes that an instance started itself are ever signalled (see `processes` and `cgroups`).
- Python's standard library is all it needs: it runs before any virtual environment exists.

Modules, each using only those above it:

    console, commands, paths      output for people, child processes, folders
    plan                          all names and addresses of one instance, computed
    cgroups, mounts, network      the kernel's side of an instance
    processes                     detached processes, recorded so that a recycled pid is never hit
    requirements, tools, archive, images     what must be there before `up`
    certificates, controlplane, node, addons what runs
    instance                      up, down, status
    faults, operatorimage, external, cli     what people and tests call
"""
