# ===- test_imports.py - imports of modules by modules ----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The modules of the package import each other in one direction. Imports within functions
and by `importlib.import_module` count, too. `_later` has what a module calls that imports
it.

Programs outside of the package, of which some run on other machines or with packages that
these tests do not have, name only what its modules have."""

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


def list_names(path):
    """Returns the names that the text of a module binds."""
    names = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    # Names of functions and classes are their own.
    todo = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(one.asname or one.name).partition(".")[0] for one in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        else:
            todo += ast.iter_child_nodes(node)
    return names


def list_uses(path):
    """Yields the line and the whole name of what a program imports, and of attributes of
    that."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    aliases = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            for one in node.names:
                yield node.lineno, f"{node.module}.{one.name}"
                aliases[one.asname or one.name] = f"{node.module}.{one.name}"
        elif isinstance(node, ast.Import):
            for one in node.names:
                yield node.lineno, one.name
                first = one.name.partition(".")[0]
                aliases[one.asname or first] = one.name if one.asname else first
    for node in ast.walk(tree):
        parts = []
        inner = node
        while isinstance(inner, ast.Attribute):
            parts.insert(0, inner.attr)
            inner = inner.value
        if parts and isinstance(inner, ast.Name) and inner.id in aliases:
            yield node.lineno, ".".join([aliases[inner.id], *parts])
        # monkeypatch.setattr(module, "name", value)
        if (isinstance(node, ast.Call) and ast.unparse(node.func).endswith("setattr")
                and len(node.args) > 2 and isinstance(node.args[0], ast.Name)
                and isinstance(node.args[1], ast.Constant)):
            yield node.lineno, f"{aliases.get(node.args[0].id)}.{node.args[1].value}"


def find_missing(path, modules):
    """Returns the names of a package that a program uses and that its modules lack."""
    missing = set()
    for line, used in list_uses(path):
        module, rest = used, []
        while module and module not in modules:
            module, _, last = module.rpartition(".")
            rest.insert(0, last)
        if not module or not rest:
            continue
        names = list_names(modules[module])
        # A function makes public names of some modules.
        is_made = "__getattr__" in names and not rest[0].startswith("_")
        if rest[0] not in names and not is_made and not rest[0].startswith("__"):
            missing.add((line, f"{module}.{rest[0]}"))
    return [f"{path.name}:{line}: {name}" for line, name in sorted(missing)]


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


def test_programs_name_what_is_there():
    modules = find_modules(SOURCE / "python" / "posenc")
    programs = [path for folder in ("python", "test", "examples", "tools", "docs")
                for path in sorted((SOURCE / folder).rglob("*.py"))
                if not path.is_relative_to(SOURCE / "python" / "posenc")]
    assert {"worker.py", "vllm-kernels.py", "test_cuda.py"} <= {
        path.name for path in programs}
    assert [one for path in programs for one in find_missing(path, modules)] == []


@pytest.mark.parametrize("text", [
    "from pack._low import gone", "from pack import _gone", "from pack._gone import f",
    "import pack._gone", "import pack\npack._low.gone()",
    "import pack._low as low\nlow.gone()", "from pack import _low\n_low.gone = 1",
    "def f():\n    from pack import _low\n    setattr(_low, 'gone', 1)",
    "from pack import _low\nmonkeypatch.setattr(_low, 'gone', 1)",
    "from pack._made import _gone"])
def test_a_name_that_is_gone_is_found(text, tmp_path):
    folder, program = tmp_path / "pack", tmp_path / "program.py"
    folder.mkdir()
    for name, content in {"__init__": "from ._low import C", "_low": LOW,
                          "_made": "def __getattr__(name): return name"}.items():
        (folder / f"{name}.py").write_text(content, encoding="utf-8")
    modules = find_modules(folder)
    program.write_text(text, encoding="utf-8")
    assert len(find_missing(program, modules)) == 1
    program.write_text(
        "import os, pack, pack._low as low\nfrom pack._low import a, b, c, d, C\n"
        "from pack._made import made\nlow.C.gone, low.__doc__, os.gone, pack.C.gone",
        encoding="utf-8")
    assert find_missing(program, modules) == []


LOW = """
import a
from os import path as b
class C:
    gone = 1
def f(gone): pass
try:
    c, d = 1, 2
except ImportError:
    pass
"""
