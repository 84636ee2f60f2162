#!/usr/bin/env python3
# ===- interface.py - what programs in C depend on --------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Lists the interface of headers and libraries, or compares it with that of a release:

    interface.py list CLANG NM HEADERS LIBRARY...
    interface.py compare RELEASE.txt CLANG NM HEADERS LIBRARY...

HEADERS are the include folders, separated by commas. The list has a line for each macro,
constant, type, field and function of the C headers, with its value, layout or type on this
machine, and whether a library exports the function. `compare` prints the lines of a release
that are no longer there, and new fields of its structures, and exits with 1 if there are any.
Other new lines are compatible.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

C_HEADERS = ["posenc/runtime/runtime.h", "posenc/runtime/cuda.h", "posenc/runtime/vulkan.h",
             "posenc-c/Compile.h"]


def is_ours(name):
    return name.lower().startswith("posenc")


class Interface:
    def __init__(self, clang, nm, headers, libraries):
        self.clang, self.nm, self.libraries = clang, nm, libraries
        self.flags = [flag for folder in headers.split(",") for flag in ("-I", folder)]
        self.includes = "".join(f"#include <{header}>\n" for header in C_HEADERS)
        # Lines that do not depend on the machine, and expressions whose values do.
        self.lines, self.values = [], []

    def compile(self, *flags, text=""):
        return subprocess.run([self.clang, "-std=c11", *self.flags, *flags, "-x", "c", "-"],
                              input=self.includes + text, stdout=subprocess.PIPE, text=True,
                              check=True).stdout

    def read_macros(self):
        for line in self.compile("-dM", "-E").splitlines():
            name, _, value = line.removeprefix("#define ").partition(" ")
            # Not include guards and attributes. Limits may grow.
            if is_ours(name) and value and "__attribute__" not in value and "_MAX_" not in name:
                self.lines.append(f"macro {name} {value}")

    def read_fields(self, owner, node):
        for field in node.get("inner", []):
            if field["kind"] == "RecordDecl":
                self.read_fields(owner, field)
            elif field["kind"] == "FieldDecl" and "name" in field:
                name, kind = field["name"], field["type"]["qualType"]
                self.values.append((f"field {owner}.{name} {kind} at",
                                    f"offsetof({owner}, {name})"))

    def read_declarations(self):
        exported = set()
        for library in self.libraries:
            listed = subprocess.run([self.nm, "-D", "--defined-only", library],
                                    capture_output=True, text=True, check=True).stdout
            exported.update(line.split()[-1] for line in listed.splitlines())
        record = None
        for node in json.loads(self.compile("-Xclang", "-ast-dump=json", "-fsyntax-only"))["inner"]:
            kind, name = node["kind"], node.get("name", "")
            if kind == "RecordDecl":
                record = node
            elif kind == "EnumDecl":
                for constant in node["inner"]:
                    if is_ours(constant.get("name", "")):
                        self.values.append((f"constant {constant['name']}", constant["name"]))
            elif kind == "TypedefDecl" and is_ours(name):
                meaning = node["type"]["qualType"]
                if meaning == f"struct {name}" and record and record.get("completeDefinition"):
                    self.values.append((f"struct {name} of bytes", f"sizeof({name})"))
                    self.read_fields(name, record)
                else:
                    self.lines.append(f"type {name} {meaning}")
            elif kind == "FunctionDecl" and is_ours(name):
                state = "" if name in exported else " (not exported)"
                self.lines.append(f"function {name} {node['type']['qualType']}{state}")

    def evaluate(self):
        calls = "".join(f'  printf("%s %lld\\n", "{text}", (long long)({value}));\n'
                        for text, value in self.values)
        with tempfile.TemporaryDirectory() as place:
            program = pathlib.Path(place, "values")
            self.compile("-o", str(program), text="#include <stddef.h>\n#include <stdio.h>\n"
                         "int main(void) {\n" + calls + "}\n")
            self.lines += subprocess.run([program], capture_output=True, text=True,
                                         check=True).stdout.splitlines()

    def list(self):
        self.read_macros()
        self.read_declarations()
        self.evaluate()
        return sorted(self.lines)


def find_fields(lines):
    """Returns the lines about fields by their names, such as posenc_tensor.rank."""
    return {line.split()[1]: line for line in lines if line.startswith("field ")}


def compare(promised, lines):
    """Returns the messages about what is not as it was. A new field may leave all others and
    the size as they were, where a structure has padding."""
    messages = [f"no longer there: {line}" for line in sorted(set(promised) - set(lines))]
    fields = find_fields(promised)
    structures = {name.split(".")[0] for name in fields}
    return messages + [
        f"new in a structure: {line}" for name, line in sorted(find_fields(lines).items())
        if name not in fields and name.split(".")[0] in structures]


def main():
    command, *rest = sys.argv[1:]
    release = rest.pop(0) if command == "compare" else None
    clang, nm, headers, *libraries = rest
    lines = Interface(clang, nm, headers, libraries).list()
    if not release:
        print(*lines, sep="\n")
        return 0
    promised = pathlib.Path(release).read_text(encoding="utf-8").splitlines()
    messages = compare(promised, lines)
    print(*messages, f"{len(set(promised) & set(lines))} of {len(promised)} are as they were",
          sep="\n")
    return 1 if messages or not promised else 0


if __name__ == "__main__":
    sys.exit(main())
