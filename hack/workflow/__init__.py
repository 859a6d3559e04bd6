"""What `hack/deploy`, `hack/demo` and `hack/test` have in common.

Promises: Python's standard library is enough (they run before any virtual environment exists); everything
they need is installed or named in one line; a second run does only what is new; an existing Kubernetes is
used only when `--kubeconfig` names it, never because `$KUBECONFIG` happens to be set.

    kubernetes     which Kubernetes: the local one, brought up if need be, or the named one
    deployment     the operator's image and its Deployment on that Kubernetes
    demo, suite    the two commands of the README
"""
