"""Makes a plan for each state of a corpus again, and compares it with the recorded one."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.oracle import corpus, mapping
from unit.oracle.text import Node, Object, classes_of, compact, node_of, value_of


@dataclass(slots=True)
class Result:
    """What became of some pairs. reasons: of those that differ, recorded and today's. texts: for people."""

    equal: int = 0
    left_out: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    texts: list[str] = field(default_factory=list)

    def __add__(self, other: "Result") -> "Result":
        return Result(
            self.equal + other.equal,
            self.left_out + other.left_out,
            self.reasons + other.reasons,
            self.texts + other.texts,
        )


def replay_file(path: Path, *, sample: int, processes: int, ignores_messages: bool, shown: int) -> int:
    """Replay each `sample`-th line and print the figures; the exit code."""
    part = partial(_replay_part, path, sample * processes, ignores_messages, shown)
    with ProcessPoolExecutor(processes) as pool:
        results = pool.map(part, range(0, sample * processes, sample))
        digest = corpus.digest(islice(corpus.read(path), 0, None, sample))
        result = sum(results, Result())
    different = result.reasons.total()
    for text in result.texts[:shown]:
        print(text, end="\n\n")
    for reasons, count in result.reasons.most_common():
        print(f"{count:8} {reasons}")
    print(
        f"{result.equal} equal, {different} different, {result.left_out} left out; sha256 of these {digest}"
    )
    return 1 if different else 0


def _replay_part(path: Path, step: int, ignores_messages: bool, shown: int, first: int) -> Result:
    numbered = islice(enumerate(corpus.read(path)), first, None, step)
    return replay(numbered, ignores_messages=ignores_messages, shown=shown)


def replay(
    lines: Iterable[tuple[int, str]], *, ignores_messages: bool = False, shown: int | None = None
) -> Result:
    """Replay numbered lines."""
    result, classes = Result(), classes_of(ClusterState)
    for number, line in lines:
        pair: Object = json.loads(line)
        if mapping.is_left_out(pair["state"], pair["plan"]):
            result.left_out += 1
            continue
        try:
            state, recorded = (mapping.converted(pair[part], (pair,)) for part in ("state", "plan"))
            made = node_of(mapping.decide(value_of(state, classes)))
        except Exception as error:  # noqa: BLE001 - whatever it is, no equal plan was made
            recorded, made = pair["plan"], {"reason": f"{type(error).__name__}: {error}"}
        if ignores_messages:
            recorded, made = _without_messages(recorded), _without_messages(made)
        if recorded == made:
            result.equal += 1
            continue
        reasons = f"{recorded['reason']} -> {made['reason']}"
        result.reasons[reasons] += 1
        if shown is None or len(result.texts) < shown:
            result.texts.append("\n".join((f"pair {number}: {reasons}", *differences(recorded, made))))
    return result


def differences(recorded: Node, made: Node, path: str = "plan") -> Iterator[str]:
    """Where two nodes differ."""
    if isinstance(recorded, dict) and isinstance(made, dict) and recorded.get("!") == made.get("!"):
        for key in sorted(recorded.keys() | made.keys()):
            one, other = recorded.get(key, "<default>"), made.get(key, "<default>")
            yield from differences(one, other, f"{path}.{key}")
    elif isinstance(recorded, list) and isinstance(made, list) and len(recorded) == len(made):
        for number, (one, other) in enumerate(zip(recorded, made, strict=True)):
            yield from differences(one, other, f"{path}[{number}]")
    elif recorded != made:
        yield f"  {path}\n    recorded {compact(recorded)}\n    today    {compact(made)}"


def _without_messages(node: Node) -> Node:
    if isinstance(node, list):
        return [_without_messages(each) for each in node]
    if isinstance(node, dict):
        return {key: _without_messages(each) for key, each in node.items() if key != "message"}
    return node
