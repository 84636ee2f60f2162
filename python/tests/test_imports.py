# ===- test_imports.py - imports of modules by modules ----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The modules of the package import each other in one direction. Imports within functions
and by `importlib.import_module` count, too. `_later` has what a module calls that imports
it."""

import ast
import os
import pathlib

import pytest

SOURCE = pathlib.Path(os.environ.get("POSENC_SOURCE",
                                     pathlib.Path(__file__).parents[2]))


def find_modules(folder):
    """Returns the path of each module of a package by its name."""
    modules = {}
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


def list_imports(name, path):
    """Yields what the text of a module imports, by its whole name."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")
            base = base[:len(base) - node.level + 1] if node.level else []
            base = ".".join([*base, *filter(None, [node.module])])
            # A name may be a module of the package.
            yield from (f"{base}.{one.name}" for one in node.names)
        elif (isinstance(node, ast.Call) and node.args
              and ast.unparse(node.func) in ("importlib.import_module", "import_module",
                                             "__import__")
              and isinstance(node.args[0], ast.Constant)):
            target = str(node.args[0].value)
            yield package + target if target.startswith(".") else target


def make_graph(folder):
    """Returns the modules that each module imports."""
    modules = find_modules(folder)
    graph = {}
    for name, path in modules.items():
        graph[name] = imported = set()
        for target in list_imports(name, path):
            while target and target not in modules:
                target = target.rpartition(".")[0]
            imported |= {target} - {"", name}
    return graph


def find_circle(graph):
    """Returns modules of which each imports the next one, and the last one the first; None
    if there are none."""
    done, path = set(), []

    def visit(name):
        if name in path:
            return path[path.index(name):]
        if name in done:
            return None
        path.append(name)
        for other in sorted(graph[name]):
            circle = visit(other)
            if circle:
                return circle
        path.pop()
        done.add(name)
        return None

    for name in sorted(graph):
        circle = visit(name)
        if circle:
            return circle
    return None


def test_imports_have_one_direction():
    graph = make_graph(SOURCE / "python" / "posenc")
    assert "posenc._kernels" in graph["posenc._compile"]
    assert "posenc._operators" in graph["posenc._bridges"]
    assert len(graph) > 80
    circle = find_circle(graph)
    assert circle is None, " -> ".join([*circle, circle[0]])


@pytest.mark.parametrize("text", [
    "from . import _high", "from ._high import f", "from pack._high import f",
    "import pack._high", "def f():\n    from . import _high",
    "def f():\n    if f:\n        import pack._high as high",
    "import importlib\nhigh = lambda: importlib.import_module('pack._high')",
    "class C:\n    from ._inner import g"])
def test_a_circle_is_found(text, tmp_path):
    folder = tmp_path / "pack"
    folder.mkdir()
    for name, content in {"__init__": "from ._high import f", "_low": text,
                          "_high": "from ._middle import f", "_inner": "from ._high import f",
                          "_middle": "import os\nfrom ._low import f"}.items():
        (folder / f"{name}.py").write_text(content, encoding="utf-8")
    circle = find_circle(make_graph(folder))
    assert circle and {"pack._low", "pack._middle", "pack._high"} <= set(circle)
    (folder / "_low.py").write_text("import sys", encoding="utf-8")
    assert find_circle(make_graph(folder)) is None
