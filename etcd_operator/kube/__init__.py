"""The Kubernetes API over HTTP: the only package that sees an HTTP status.

    auth -> transport -> client -> watch -> reflector -> informer (with its store)

Each module states its promises in its docstring. Errors leave this package only as `etcd_operator.errors`,
objects only as the type that the caller names or as plain dicts.
"""
