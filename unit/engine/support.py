"""What tests of the engine share."""

from collections.abc import Iterator

from etcd_operator.engine.workqueue import WorkQueue


class Crashes(list[tuple[str, str]]):
    """An `on_crash` that remembers."""

    def __call__(self, name: str, error: BaseException) -> None:
        self.append((name, repr(error)))


def take_all(queue: WorkQueue[str]) -> Iterator[str]:
    """Take and finish each item that waits."""
    while queue.depth:
        item = queue.get()
        queue.done(item)
        yield item
