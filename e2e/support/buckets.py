"""What is stored in a bucket, by the plain interfaces of the services: an independent check for tests."""

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class S3Bucket:
    """A bucket of an S3 gateway."""

    endpoint: str
    name: str
    environment: Mapping[str, str] = field(repr=False)

    def create(self) -> None:
        """Make the bucket."""
        with self._client() as client:
            client.create_bucket(Bucket=self.name)

    def names(self) -> list[str]:
        """The names of all objects, sorted."""
        with self._client() as client:
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=self.name)
            return sorted(each["Key"] for page in pages for each in page.get("Contents", ()))

    def content(self, name: str) -> bytes:
        with self._client() as client:
            return bytes(client.get_object(Bucket=self.name, Key=name)["Body"].read())

    def put(self, name: str, data: bytes) -> None:
        """Store an object, or replace it."""
        with self._client() as client:
            client.put_object(Bucket=self.name, Key=name, Body=data)

    def unfinished(self) -> list[str]:
        """The names of objects whose upload was begun and neither completed nor aborted."""
        with self._client() as client:
            found = client.list_multipart_uploads(Bucket=self.name)
            return sorted(each["Key"] for each in found.get("Uploads", ()))

    def _client(self) -> AbstractContextManager[Any]:
        import boto3

        return closing(
            boto3.client(
                "s3",
                endpoint_url=self.endpoint,
                region_name="us-east-1",
                aws_access_key_id=self.environment["AWS_ACCESS_KEY_ID"],
                aws_secret_access_key=self.environment["AWS_SECRET_ACCESS_KEY"],
            )
        )


@dataclass(frozen=True, slots=True)
class GCSBucket:
    """A bucket of a GCS emulator, by its JSON API."""

    endpoint: str
    name: str
    environment: Mapping[str, str] = field(repr=False)

    def create(self) -> None:
        self._request("/storage/v1/b?project=test", json.dumps({"name": self.name}).encode())

    def names(self) -> list[str]:
        found: list[str] = []
        token = ""
        while True:
            page = json.loads(self._request(f"/storage/v1/b/{self.name}/o?pageToken={quote(token)}"))
            found += [each["name"] for each in page.get("items", ())]
            token = page.get("nextPageToken", "")
            if not token:
                return sorted(found)

    def content(self, name: str) -> bytes:
        return self._request(f"/storage/v1/b/{self.name}/o/{quote(name, safe='')}?alt=media")

    def put(self, name: str, data: bytes) -> None:
        path = f"/upload/storage/v1/b/{self.name}/o?uploadType=media&name={quote(name, safe='')}"
        self._request(path, data)

    def _request(self, path: str, body: bytes | None = None) -> bytes:
        with urlopen(Request(f"{self.endpoint}{path}", data=body), timeout=_SECONDS) as reply:
            return bytes(reply.read())


Bucket = S3Bucket | GCSBucket
"""A bucket of a store."""
