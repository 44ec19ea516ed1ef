"""Print how large the package is, and how much of it `discover` reaches.

Run from the root of the repository: ``python .ci/measures.py``.  It exits with 1 if `discover`
reaches more modules than `MOST_REACHED`, or if a name stands for two things.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "lkm_gpflow"
START = f"{PACKAGE}.discovery.discover"
MOST_REACHED = 100

ABOVE = {
    "explain",
    "report",
    "plotting",
    "comparators",
    "evaluation",
    "sktime",
    "cli",
    "experiments",
}
"""Rooms above `discovery`: its imports of them are conveniences inside methods."""

FILES = {
    ".".join(path.with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(Path(PACKAGE).rglob("*.py"))
}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in FILES.items()}


def imported(module: str) -> Iterator[str]:
    """Modules of the package that a module imports anywhere, also inside functions."""
    own = module if FILES[module].name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parent = own.split(".")[: len(own.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parent, *filter(None, [node.module])])
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        yield from (name for name in names if name in FILES)


def reached(start: str) -> set[str]:
    """Modules that are loaded by a module, now or later; empty `__init__` files do not count."""
    seen, left = set[str](), [start]
    while left:
        module = left.pop()
        room = module.split(".")[1] if "." in module else ""
        if module not in seen and room not in ABOVE:
            seen.add(module)
            left += imported(module)
    return {module for module in seen if FILES[module].name != "__init__.py"}


def lines(paths: Iterator[Path]) -> int:
    """Lines of files."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def names_that_occur_twice() -> list[str]:
    """Modules, classes and public functions of one name in two files."""
    where = defaultdict[str, set[str]](set)
    for module, tree in TREES.items():
        if FILES[module].name in ("__init__.py", "__main__.py"):
            continue
        where[f"module {module.rpartition('.')[2]}"].add(module)
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                where[node.name].add(module)
    return sorted(
        f"{name} ({', '.join(sorted(m.removeprefix(PACKAGE + '.') for m in modules))})"
        for name, modules in where.items()
        if len(modules) > 1
    )


def most_arguments() -> tuple[int, str]:
    """The largest number of arguments of a function, and which one has it."""
    return max(
        (
            len(node.args.posonlyargs + node.args.args + node.args.kwonlyargs),
            f"{module}.{node.name}",
        )
        for module, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    )


def main() -> int:
    """Print all measures."""
    rooms = Counter[str]()
    for path in FILES.values():
        rooms[path.parts[1] if len(path.parts) > 2 else "."] += lines(iter([path]))
    tests = Counter[str]()
    for path in Path("tests").rglob("*.py"):
        tests[path.parts[1] if len(path.parts) > 2 else "."] += lines(iter([path]))
    print(f"{'room':14} lines  tests")
    for room in sorted({*rooms, *tests}):
        print(f"{room:14} {rooms[room]:5}  {tests[room]:5}")
    print(f"{'all':14} {rooms.total():5}  {tests.total():5}")
    modules = reached(START)
    count = lines(FILES[module] for module in modules)
    print(f"discover reaches {len(modules)} modules of {count} lines (at most {MOST_REACHED})")
    print("most arguments: {} ({})".format(*most_arguments()))
    twice = names_that_occur_twice()
    print(f"names that stand for two things: {len(twice)}", *twice, sep="\n  ")
    return int(len(modules) > MOST_REACHED or bool(twice))


if __name__ == "__main__":
    sys.exit(main())
