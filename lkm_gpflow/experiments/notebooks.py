"""What a notebook takes: the names in its cell tagged "parameters"."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def parameters_of(notebook: Mapping[str, Any]) -> list[str]:
    """Names that the cell tagged ``parameters`` gives values to; none if there is no such cell."""
    names: list[str] = []
    for cell in notebook["cells"]:
        if "parameters" not in cell.get("metadata", {}).get("tags", []):
            continue
        for statement in ast.parse("".join(cell["source"])).body:
            if isinstance(statement, ast.AnnAssign):
                targets: list[ast.expr] = [statement.target]
            else:
                targets = statement.targets if isinstance(statement, ast.Assign) else []
            names += [target.id for target in targets if isinstance(target, ast.Name)]
    return names


def check_parameters(path: Path, parameters: Mapping[str, object]) -> None:
    """Raise a ValueError if a notebook does not take a parameter; papermill would only warn."""
    if not path.exists():
        raise ValueError(f"expected a notebook, there is no {path}")
    known = parameters_of(json.loads(path.read_text(encoding="utf-8")))
    if unknown := [name for name in parameters if name not in known]:
        raise ValueError(
            f"{path.name}: expected parameters among {known} (its cell tagged 'parameters'), "
            f"got {unknown}"
        )
