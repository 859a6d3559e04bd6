"""The resources users write, as frozen values: no I/O, no behaviour beyond reading a field.

`meta` holds what every Kubernetes object carries, `improbable` and `coreos` the two API
groups. `crd` renders the CustomResourceDefinitions from the same types, so that what
the operator reads and what the API server accepts cannot drift apart.
"""
