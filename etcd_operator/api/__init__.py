"""The resources as immutable values: no I/O, no behaviour beyond reading a field.

`meta` has the parts that all Kubernetes objects share, `improbable` and `coreos` the two API
groups. `crd` renders the CustomResourceDefinitions from the same types, so the operator reads
exactly what the API server accepts.
"""
