"""What of the repository is generated, and from what.

Promises: a generator writes exactly what it generates; with `--check` it writes nothing and exits with 1 if
the tree differs. CI checks all of them.

    manifests    manifests/crd, manifests/policies and one deployment, from etcd_operator.api
    bad_input    docs/bad-input.md, from the cases of unit/api/contract
    proto        etcd's messages, from etcd_operator/etcd/rpc.proto
    requirements what the image installs, from setup.cfg and constraints.txt (no `--check`: it asks the index)
    schemas      the schemas of Kubernetes' own types, from a running API server (`hack/refresh-schemas`)
"""
