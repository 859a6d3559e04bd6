# The operator's image; docker, podman and buildah build it:
#
#   docker build --tag localhost/etcd-operator:0.1.0 .
#
# BASE is any image with python3 from 3.11 on and its venv module. Both stages use it, so that the
# virtual environment finds the same interpreter at the same path.
#
# Pip's settings and a CA bundle can be given as the secrets pip.conf and ca.crt (hack/cluster build-image
# does so); they are there while pip runs and in no layer.

ARG BASE=docker.io/library/python:3.12-slim

FROM ${BASE} AS builder
# Two environments: the tools that build stay behind.
RUN python3 -m venv /build && python3 -m venv --without-pip /opt/etcd-operator
WORKDIR /src
COPY requirements.txt requirements-build.txt ./
# Dependencies before the source: this layer lasts until a pin changes. What is never imported goes
# (an asynchronous twin of the Kubernetes client, tests); what is imported on demand is not compiled.
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
    --mount=type=secret,id=ca.crt,target=/run/ca.crt \
    /build/bin/pip install --no-cache-dir --require-hashes --requirement requirements-build.txt \
    && /build/bin/pip --python /opt/etcd-operator/bin/python3 install --no-cache-dir --no-compile \
       --require-hashes --requirement requirements.txt \
    && rm -rf /opt/etcd-operator/lib/python3*/site-packages/kubernetes/aio \
    && find /opt/etcd-operator -depth -type d -name tests -exec rm -rf {} + \
    && python3 -m compileall -q -x '/kubernetes/client/(api|models)/' /opt/etcd-operator/lib
COPY pyproject.toml setup.cfg README.md ./
COPY etcd_operator etcd_operator
RUN /build/bin/pip wheel --no-cache-dir --no-index --no-deps --no-build-isolation --wheel-dir dist . \
    && /build/bin/pip --python /opt/etcd-operator/bin/python3 install --no-cache-dir --no-index --no-deps \
       dist/*.whl

FROM ${BASE}
COPY --from=builder /opt/etcd-operator /opt/etcd-operator
# The fault handler: a crash of native code (gRPC, TLS) would end the process without a word.
ENV PATH=/opt/etcd-operator/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONFAULTHANDLER=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["etcd-operator"]
CMD ["run"]
