"""A collection, read in pages.

- If its continue token expires (410) the list starts again without pages, which cannot expire; if a response
  is too large for our memory, with smaller pages.
- One object that does not fit the type does not hide the others: it is left out of the items, named in
  `unreadable`, and logged.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from etcd_operator.errors import Conflict, Gone
from etcd_operator.kube.decode import ListPage, Unreadable, decode_each
from etcd_operator.kube.resources import Resource
from etcd_operator.kube.transport import TooLarge

T = TypeVar("T")

ReadPage = Callable[[Mapping[str, str]], ListPage]
"""Request one page, with these parameters: `limit`, `continue`."""

PAGE_SIZES = (500, 50, 5, 1)
"""Objects per page of a list; if a page is too large, the list is read again with the next size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[T]):
    """A collection at one moment."""

    items: tuple[T, ...]
    resource_version: str
    unreadable: tuple[Unreadable, ...] = ()  # objects that exist but do not fit the type

    def whole(self) -> tuple[T, ...]:
        """The items. Raises Conflict if an object cannot be read: it must not look like an absent one."""
        if self.unreadable:
            names = ", ".join(f"{each.key} ({each.error})" for each in self.unreadable)
            raise Conflict(f"objects exist that cannot be read: {names}")
        return self.items


def read_all(read_page: ReadPage, resource: Resource, kind: type[T]) -> Listing[T]:
    """All pages. Raises the errors of `read_page`."""
    *larger, smallest = PAGE_SIZES
    for size in larger:
        with suppress(TooLarge):
            return _of_size(size, read_page, resource, kind)
    return _of_size(smallest, read_page, resource, kind)


def _of_size(size: int, read_page: ReadPage, resource: Resource, kind: type[T]) -> Listing[T]:
    try:
        return _pages({"limit": str(size)}, read_page, resource, kind)
    except Gone:
        return _pages({}, read_page, resource, kind)


def _pages(query: Mapping[str, str], read_page: ReadPage, resource: Resource, kind: type[T]) -> Listing[T]:
    items: list[T] = []
    odd: list[Unreadable] = []
    while True:
        page = read_page(query)
        for item in decode_each(resource, page.items or [], kind):
            if isinstance(item, Unreadable):
                odd.append(item)
            else:
                items.append(item)
        if not page.metadata.continue_token:
            version = page.metadata.resource_version
            return Listing(items=tuple(items), resource_version=version, unreadable=tuple(odd))
        query = {**query, "continue": page.metadata.continue_token}
