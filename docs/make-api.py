#!/usr/bin/env python3
# ===- make-api.py - the reference of the Python package --------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Usage: make-api.py [--check] [PACKAGE [PAGE]]
#
# Writes docs/python/api.md from the docstrings of the public names of python/posenc: those
# in the `__all__` of its public modules. It reads the sources and imports nothing.
# --check compares the page instead, and fails if it is out of date. A public function is an
# error if it has
#   - no docstring;
#   - a parameter without a type;
#   - a parameter that its docstring does not name, and neither does that of a function to
#     which it refers: "those of `f`", "as `f`";
#   - a result that its docstring does not describe by "Returns";
#   - parameters, and nothing about errors: "Raises" or "error".

import ast
import dataclasses
import difflib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODULES = ("posenc", "posenc.functional", "posenc.torch", "posenc.transformers",
           "posenc.jax", "posenc.viz", "posenc.vllm")
HEAD = """# Python API

<!-- docs/make-api.py writes this page from docstrings. -->

Types are those of the signatures, and shapes are in brackets, from the outermost dimension to
the innermost. `Array` is any array of [these frameworks](#posencarray). Errors are
[`posenc.Error`](#posencerror) unless a function says something else.
"""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# A signature that is longer has one parameter in each line.
COLUMNS = 88


@dataclasses.dataclass
class Definition:
    name: str  # that users write, such as posenc.torch.rope
    node: ast.AST
    where: str


class Package:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.trees = {}

    def find_path(self, module):
        path = self.folder.parent.joinpath(*module.split("."))
        package = path / "__init__.py"
        return package if package.exists() else path.with_suffix(".py")

    def parse(self, module):
        if module not in self.trees:
            self.trees[module] = ast.parse(self.find_path(module).read_text("utf-8"))
        return self.trees[module]

    def list_public(self, module):
        """Returns the names in `__all__`."""
        for node in self.parse(module).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                return ast.literal_eval(node.value)
        raise SystemExit(f"{self.find_path(module)}: there is no __all__")

    def find(self, module, name):
        """Returns the module and the node that define a name, behind imports. Those
        in functions count, as modules import on demand."""
        tree = self.parse(module)
        for node in tree.body:
            if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node.name == name:
                return module, node
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if ast.unparse(target) == name:
                    return module, node
        is_package = self.find_path(module).name == "__init__.py"
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or not node.level:
                continue
            names = {one.asname or one.name: one.name for one in node.names}
            if name not in names:
                continue
            parts = module.split(".")
            base = parts[:len(parts) - node.level + is_package]
            target = ".".join([*base, *filter(None, [node.module])])
            if not node.module:  # A module itself.
                return f"{target}.{name}", self.parse(f"{target}.{name}")
            return self.find(target, names[name])
        raise SystemExit(f"{self.find_path(module)}: '{name}' of __all__ is not defined")


def get_parameters(node):
    """Returns the parameters of a function, without `self`."""
    given = node.args
    every = [*given.posonlyargs, *given.args, *filter(None, [given.vararg]),
             *given.kwonlyargs, *filter(None, [given.kwarg])]
    return [one for one in every if one.arg not in ("self", "cls")]


def is_public(node):
    return isinstance(node, FUNCTIONS) and not node.name.startswith("_")


def get_docs(definitions):
    """Returns the docstrings of functions by their names, with and without modules."""
    docs = {}
    for one in definitions:
        if isinstance(one.node, FUNCTIONS):
            text = ast.get_docstring(one.node) or ""
            docs[one.name] = text
            docs.setdefault(one.name.rpartition(".")[2], text)
    return docs


def check_function(name, node, docs):
    """Returns what is wrong with the documentation of a function."""
    text = ast.get_docstring(node)
    if not text:
        return [f"{name}: it has no docstring"]
    problems, known = [], text
    for other in re.findall(r"(?:those of|[Aa]s|[Aa]s for) `([\w.]+)`", text):
        known += docs.get(other, "")
    for one in get_parameters(node):
        if one.annotation is None:
            problems.append(f"{name}: the parameter '{one.arg}' has no type")
        if not one.arg.startswith("_") and not re.search(rf"\b{one.arg}\b", known):
            problems.append(f"{name}: the docstring does not name '{one.arg}'")
    returns = node.returns and ast.unparse(node.returns)
    if returns is None:
        problems.append(f"{name}: the result has no type")
    elif returns != "None" and not re.search(r"\b[Rr]eturns\b", text):
        problems.append(f"{name}: the docstring does not say what the function returns")
    if get_parameters(node) and not re.search(r"\b(Raises|[Ee]rrors?)\b", text):
        problems.append(f"{name}: the docstring names no errors")
    return problems


def check(definitions):
    docs = get_docs(definitions)
    for one in definitions:
        if isinstance(one.node, FUNCTIONS):
            yield from check_function(one.name, one.node, docs)
        elif isinstance(one.node, ast.ClassDef):
            if not ast.get_docstring(one.node):
                yield f"{one.name}: it has no docstring"
            for member in filter(is_public, one.node.body):
                if not ast.get_docstring(member):
                    yield f"{one.name}.{member.name}: it has no docstring"


# ===----------------------------------------------------------------------===#
# Pages
# ===----------------------------------------------------------------------===#


def is_property(node):
    return any(ast.unparse(one) == "property" for one in node.decorator_list)


def write_signature(name, node):
    """Returns the signature of a function as Python writes it."""
    node = ast.parse(ast.unparse(node)).body[0]
    node.decorator_list, node.body = [], [ast.Pass()]
    arguments = node.args
    for some in (arguments.posonlyargs, arguments.args):
        some[:] = [one for one in some if one.arg not in ("self", "cls")]
    line = ast.unparse(node).split("\n")[0].removesuffix(":")
    line = name + line.removeprefix(f"def {node.name}")
    # The parameters are divided at the commas of their own level.
    head, rest = line.split("(", 1)
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(rest):
        if depth == 0 and letter in ",)":
            parts.append(re.sub(r"^(\w+: [^=]*)=", r"\1 = ", rest[start:index].strip()))
            start = index + 1
            if letter == ")":
                break
        depth += (letter in "([{") - (letter in ")]}")
    parts, end = [part for part in parts if part], rest[start:]
    line = f"{head}({', '.join(parts)}){end}"
    return line if len(line) <= COLUMNS else (
        f"{head}(\n    " + ",\n    ".join(parts) + f"){end}")


def write_text(text, parameters):
    """Returns a docstring as Markdown. `name: what` is an item of a list."""
    lines, in_list, in_code = [], False, False
    for line in text.split("\n"):
        item = re.match(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*(?: and others)?): (.*)", line)
        names = re.findall(r"\w+", item[1].replace(" and others", "")) if item else []
        if item and all(name in parameters for name in names):
            if lines and lines[-1] and not in_list:
                lines.append("")
            lines.append(f"- `{'`, `'.join(names)}`: {item[2]}")
            in_list, in_code = True, False
        elif line.startswith("    ") and in_list and lines[-1]:
            lines.append("  " + line.strip())
        elif line.startswith("    "):
            if not in_code:
                lines.append("```text")
            lines.append(line[4:])
            in_list, in_code = False, True
        else:
            if in_code:
                lines.append("```")
            if in_list and line:
                lines.append("")
            lines.append(line)
            in_list = in_list and not line
            in_code = False
    if in_code:
        lines.append("```")
    # Empty lines do not end a block of code.
    text = "\n".join(lines).replace("```\n\n```text\n", "\n")
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def write_function(name, node, level):
    names = {one.arg for one in get_parameters(node)}
    yield f"{'#' * level} `{name}`\n"
    if not is_property(node):
        yield f"```py\n{write_signature(name.rpartition('.')[2], node)}\n```\n"
    yield write_text(ast.get_docstring(node) or "", names) + "\n"


def write_class(one):
    yield f"### `{one.name}`\n"
    # Parameters of the constructor, and fields.
    names = {field.target.id for field in one.node.body if isinstance(field, ast.AnnAssign)
             and isinstance(field.target, ast.Name)}
    for member in one.node.body:
        if isinstance(member, FUNCTIONS) and member.name == "__init__":
            names |= {parameter.arg for parameter in get_parameters(member)}
    yield write_text(ast.get_docstring(one.node) or "", names) + "\n"
    for member in filter(is_public, one.node.body):
        yield from write_function(f"{one.name}.{member.name}", member, 4)


def write_page(package, definitions):
    yield HEAD
    for module in MODULES:
        tree = package.parse(module)
        yield f"## {module}\n"
        yield write_text(ast.get_docstring(tree) or "", ()) + "\n"
        for one in definitions:
            if one.name.rpartition(".")[0] != module:
                continue
            if isinstance(one.node, FUNCTIONS):
                yield from write_function(one.name, one.node, 3)
            elif isinstance(one.node, ast.ClassDef):
                yield from write_class(one)


def main():
    arguments = [one for one in sys.argv[1:] if one != "--check"]
    folder = arguments[0] if arguments else ROOT / "python" / "posenc"
    page = pathlib.Path(arguments[1] if len(arguments) > 1 else
                        ROOT / "docs" / "python" / "api.md")
    package = Package(folder)
    definitions = []
    for module in MODULES:
        for name in sorted(package.list_public(module), key=str.lower):
            where, node = package.find(module, name)
            definitions.append(Definition(f"{module}.{name}", node, where))
    problems = list(check(definitions))
    if problems:
        sys.exit("\n".join(problems))
    text = "\n".join(write_page(package, definitions)).rstrip("\n") + "\n"
    if "--check" not in sys.argv:
        page.write_text(text, encoding="utf-8")
        return
    old = page.read_text(encoding="utf-8") if page.exists() else ""
    if old != text:
        sys.stdout.writelines(difflib.unified_diff(
            old.splitlines(True), text.splitlines(True), str(page), "docstrings"))
        sys.exit(f"{page} is out of date: run docs/make-api.py")
    print(f"{len(definitions)} public names")


if __name__ == "__main__":
    main()
