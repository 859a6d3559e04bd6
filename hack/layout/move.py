# ruff: noqa
"""Moves the modules and tests as `mapping` says, and rewrites what names them; nothing else changes.

Run it in a clean checkout: `python hack/layout/move.py`. It renames files with git, rewrites imports, dotted
names in strings, references in backticks in Python texts, and paths in documents and settings; then `ruff check
--fix` and `ruff format` put imports and lines in order.
"""

import ast
import re
import subprocess
from pathlib import Path

from mapping import DOCSTRINGS, FOLDERS, RENAMED_DOCSTRINGS, TESTS, TEXTS

ROOT = Path(__file__).resolve().parents[2]


def _tracked() -> list[str]:
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def moves(tracked: list[str]) -> dict[str, str]:
    """Old path -> new path."""
    found: dict[str, str] = dict(RENAMED_DOCSTRINGS)
    rest: list[tuple[str, str]] = []
    for table, prefix in ((FOLDERS, "etcd_operator"), (TESTS, "")):
        for folder, lines in table.items():
            for line in lines.split(";"):
                where, _, names = line.partition(":")
                old = "/".join(filter(None, (prefix, where.strip())))
                for name in names.split():
                    if name.startswith("*"):
                        rest.append((old, folder))
                        continue
                    name, _, new = name.partition("=")
                    path = f"{old}/{name}.py"
                    if path not in tracked:
                        print(f"{path}: no such file")
                        continue
                    found[path] = f"{folder}/{new or name}.py"
    for old, folder in rest:
        for path in tracked:
            inner = path.removeprefix(f"{old}/")
            if inner == path or path in found or (old.startswith("etcd_operator") and "/" in inner):
                continue
            found[path] = f"{folder}/{inner}"
    return found


def dotted(path: str) -> str:
    """The name of a module, or of a package by its `__init__.py`."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


class Rewriter:
    """Rewrites texts by the moves."""

    def __init__(self, moved: dict[str, str], tracked: list[str]) -> None:
        self.files = moved
        self.modules = {dotted(o): dotted(n) for o, n in moved.items() if o.endswith(".py")}
        self.known = {dotted(p) for p in tracked if p.endswith(".py")}
        self.suffixes: dict[tuple[str, ...], str] = {}
        for name in sorted(self.known):
            parts = tuple(name.split("."))
            for begin in range(len(parts)):
                self.suffixes.setdefault(parts[begin:], name)
        # a module of the package wins over a test of the same name
        for name in sorted(self.known):
            parts = tuple(name.split("."))
            if parts[0] == "etcd_operator":
                for begin in range(1, len(parts) - 1):
                    self.suffixes[parts[begin:]] = name

    def python(self, path: str, text: str) -> str:
        text = self._imports(path, text)
        text = self._full_names(text)
        if path.startswith("etcd_operator/") or path.startswith(("unit/", "e2e/", "hack/")):
            text = re.sub(r"`([a-z_]\w*(?:\.\w+)*)`", self._reference, text)
        return self._paths(text)

    def _imports(self, path: str, text: str) -> str:
        lines = text.splitlines(keepends=True)
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line.encode()))
        raw = text.encode()
        edits: list[tuple[int, int, str]] = []
        renamed: dict[str, str] = {}
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                new = self._import_from(node, renamed)
                if new is not None:
                    begin = starts[node.lineno - 1] + node.col_offset
                    end = starts[node.end_lineno - 1] + node.end_col_offset
                    indent = " " * node.col_offset
                    edits.append((begin, end, f"\n{indent}".join(new)))
        for old, new_name in renamed.items():
            shadows = [
                n
                for n in ast.walk(tree)
                if (isinstance(n, ast.Name) and n.id == old and not isinstance(n.ctx, ast.Load))
                or (isinstance(n, ast.arg) and n.arg == old)
                or (isinstance(n, ast.keyword) and False)
            ]
            if shadows:
                print(
                    f"{path}: {old} (module, now {new_name}) is also a variable, lines {[n.lineno for n in shadows]}"
                )
            bound = {n.lineno for n in shadows}
            for node in ast.walk(tree):
                if isinstance(node, ast.Name) and node.id == old and isinstance(node.ctx, ast.Load):
                    begin = starts[node.lineno - 1] + node.col_offset
                    if shadows and not raw[begin + len(old) :].startswith(b"."):
                        continue
                    edits.append((begin, begin + len(old), new_name))
            del bound
        for begin, end, new_text in sorted(edits, reverse=True):
            raw = raw[:begin] + new_text.encode() + raw[end:]
        return raw.decode()

    def _import_from(self, node: ast.ImportFrom, renamed: dict[str, str]) -> list[str] | None:
        module = node.module or ""
        groups: dict[str, list[str]] = {}
        changed = False
        for alias in node.names:
            inner = f"{module}.{alias.name}"
            if inner in self.modules:
                package, _, name = self.modules[inner].rpartition(".")
                changed = True
                text = f"{name} as {alias.asname}" if alias.asname else name
                if name != alias.name and not alias.asname:
                    renamed[alias.name] = name
                groups.setdefault(package, []).append(text)
                continue
            package = self.modules.get(module, module)
            changed = changed or package != module
            groups.setdefault(package, []).append(
                f"{alias.name} as {alias.asname}" if alias.asname else alias.name
            )
        if not changed:
            return None
        return [
            f"from {package} import ({', '.join(names)})"
            if len(names) > 1
            else f"from {package} import {names[0]}"
            for package, names in groups.items()
        ]

    def _full_names(self, text: str) -> str:
        """`etcd_operator.core.x.Name` in strings, in settings, and in `import a.b`."""

        def new(match: re.Match[str]) -> str:
            name = match.group(0)
            if text[: match.start()].endswith((" from ", "\nfrom ", " import ", "\nimport ")):
                return name  # `_imports` has rewritten it
            parts = name.split(".")
            for length in range(len(parts), 1, -1):
                head = ".".join(parts[:length])
                if head in self.modules:
                    return ".".join([self.modules[head], *parts[length:]])
            return name

        return re.sub(r"(?<![\w./`])(?:etcd_operator|unit)(?:\.\w+)+", new, text)

    def _reference(self, match: re.Match[str]) -> str:
        parts = tuple(match.group(1).split("."))
        for length in range(len(parts), 0, -1):
            full = self.suffixes.get(parts[:length])
            if full is None:
                continue
            if (
                length == 1
                and len(parts) == 1
                and not match.string[: match.start()].rstrip().lower().endswith("see")
            ):
                return match.group(0)
            target = self.modules.get(full)
            if target is None:
                return match.group(0)
            new = target.split(".")
            kept = new[-1:] if length == 1 else new[-2:]
            return f"`{'.'.join([*kept, *parts[length:]])}`"
        return match.group(0)

    def _paths(self, text: str) -> str:
        """Paths of files, with or without the package's folder."""

        def new(match: re.Match[str]) -> str:
            path = match.group(0)
            for prefix in ("", "etcd_operator/"):
                target = self.files.get(prefix + path)
                if target is not None:
                    return target.removeprefix(prefix)
            return path

        return re.sub(r"(?<![\w/.])[a-z_][\w]*(?:/[\w]+)+\.(?:py|yaml|json)", new, text)

    def other(self, text: str) -> str:
        """Documents and settings."""
        return self._paths(self._full_names(text))


def main() -> None:
    tracked = _tracked()
    moved = {old: new for old, new in moves(tracked).items() if old != new}
    rewriter = Rewriter(moved, tracked)
    for old, new in moved.items():
        target = ROOT / new
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "mv", old, new], cwd=ROOT, check=True)
    for new in sorted(moved.values()):
        for folder in Path(new).parents:
            init = ROOT / folder / "__init__.py"
            if folder.parts and not init.exists() and new.endswith(".py") and "golden" not in folder.parts:
                docstring = DOCSTRINGS.get(str(folder), "")
                init.write_text(f'"""{docstring}"""\n' if docstring else "")
                subprocess.run(["git", "add", str(init)], cwd=ROOT, check=True)
    for path in tracked:
        place = moved.get(path, path)
        if path.startswith("hack/layout/") or not (ROOT / place).is_file():
            continue
        if Path(path).suffix not in (".py", ".md", ".ini", ".cfg", ".toml", "") and path != ".importlinter":
            continue
        try:
            text = (ROOT / place).read_text()
        except UnicodeDecodeError:
            continue
        changed = rewriter.python(path, text) if path.endswith(".py") else rewriter.other(text)
        if changed != text:
            (ROOT / place).write_text(changed)
    for place, texts in TEXTS.items():
        text = (ROOT / place).read_text()
        for old, new in texts:
            if old not in text:
                print(f"{place}: not found: {old!r}")
            text = text.replace(old, new)
        (ROOT / place).write_text(text)
    left = [
        p
        for p in ("core", "reconcile", "render", "dialects", "backup", "backup_tool", "survivor")
        if any((ROOT / "etcd_operator" / p).rglob("*.py"))
    ]
    print(f"{len(moved)} files moved; left in old folders: {left}")


if __name__ == "__main__":
    main()
