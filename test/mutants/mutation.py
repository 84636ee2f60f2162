# ===- mutation.py - single changes of C and C++ code ----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Finds the places of a file where one change makes another program: operators,
# relations, constants, conditions and statements. The code is formatted by clang-format,
# so a binary operator has spaces on both sides, which the brackets of templates and the
# stars of pointers have not.

import collections
import re

# A change of the bytes [begin, end) of a file to a text.
Mutation = collections.namedtuple("Mutation", "kind begin end text")

# Comments, literals and directives. A number may have quotes between digits.
HIDDEN = re.compile(
    r"//[^\n]*(?:\\\n[^\n]*)*"
    r"|/\*.*?\*/"
    r"|R\"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)\""
    r"|\"(?:\\.|[^\"\\\n])*\""
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'"
    r"|^[ \t]*#[^\n]*(?:\\\n[^\n]*)*",
    re.DOTALL | re.MULTILINE)
# Calls that only tell something: their statements are not changed.
TELLING = re.compile(
    r"\b(?:assert|static_assert|llvm_unreachable|emit(?:Op)?(?:Error|Remark|Warning)"
    r"|notifyMatchFailure|report(?:Choice|Missed)|LLVM_DEBUG|formatv|attachNote"
    r"|cannotHappen)\s*\(")

SWAPPED = {
    "relation": {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    "operator": {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "&&": "||",
                 "||": "&&", "+=": "-=", "-=": "+=", "|=": "&=", "&=": "|="},
}
OPERATOR = re.compile(r"(?<=[\s])(?:[<>=!]=|[<>]|&&|\|\||[-+|&]=|[-+*/%])(?=\s)")
NAMES = {"min": "max", "max": "min", "MinSIOp": "MaxSIOp", "MaxSIOp": "MinSIOp",
         "all_of": "any_of", "any_of": "all_of", "true": "false", "false": "true"}
NAME = re.compile(r"\b(?:" + "|".join(NAMES) + r")\b")
NUMBER = re.compile(r"(?<![\w.'])(?:0|[1-9]\d{0,8})(?![\w.'])")
NEGATION = re.compile(r"(?<=[\s(])!(?=[\w(])")
CONDITION = re.compile(r"\bif \(")
# A call, or an assignment to what exists: one name before the sign.
STATEMENT = re.compile(
    r"(?<=[;{}\n])(?P<indent>[ \t]+)"
    r"(?P<code>(?!return\b|delete\b|throw\b|goto\b|using\b|case\b|else\b|do\b)"
    r"[\w:.>\[\]()*-]+(?:\([^;{}]*\)| [-+|&*]?= [^;{}]*));(?=[ \t]*\n)")


def hide(text):
    """Replaces what is no code by spaces, so that positions stay the same."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())
    code = HIDDEN.sub(blank, text)
    for match in list(TELLING.finditer(code)):
        end = find_end(code, match.end() - 1)
        code = code[:match.start()] + blank_range(code, match.start(), end) + code[end:]
    return code


def blank_range(code, begin, end):
    return re.sub(r"[^\n]", " ", code[begin:end])


def find_end(code, begin):
    """Returns the end of the statement in which a parenthesis opens, or of the argument
    of a call around it."""
    depth = 0
    for position in range(begin, len(code)):
        if code[position] in "([{":
            depth += 1
        elif code[position] in ")]}":
            depth -= 1
        if depth < 0 or (depth == 0 and code[position] == ";"):
            return position
    return len(code)


def find_close(code, begin):
    """Returns the position of the parenthesis that closes the one at `begin`."""
    depth = 0
    for position in range(begin, len(code)):
        depth += {"(": 1, ")": -1}.get(code[position], 0)
        if depth == 0:
            return position
    return None


def find_mutations(text):
    """Returns all single changes of a file, in order."""
    code = hide(text)
    found = []

    def add(kind, match, replacement):
        found.append(Mutation(kind, match.start(), match.end(), replacement))

    for match in OPERATOR.finditer(code):
        for kind, swapped in SWAPPED.items():
            # A sign or a dereference has no operand before it.
            before = code[:match.start()].rstrip()[-1:]
            if match.group() in swapped and (before.isalnum() or before in "_)]"):
                add(kind, match, swapped[match.group()])
    for match in NAME.finditer(code):
        add("name", match, NAMES[match.group()])
    for match in NUMBER.finditer(code):
        add("constant", match, str(int(match.group()) + 1))
    for match in NEGATION.finditer(code):
        add("negation", match, "")
    for match in CONDITION.finditer(code):
        begin = match.end() - 1
        close = find_close(code, begin)
        # An `if` that declares has no expression to negate.
        if close is None or re.search(r"(?<![=!<>])=(?!=)|;", code[begin:close]):
            continue
        found.append(Mutation("condition", begin, close + 1,
                              "(!" + text[begin:close + 1] + ")"))
    for match in STATEMENT.finditer(code):
        # The whole statement: what comes before it ends one.
        before = code[:match.start("indent")].rstrip()[-1:]
        line = match.group("code")
        if before in ";{}" and line.count("(") == line.count(")"):
            found.append(Mutation("statement", match.start("code"),
                                  match.end("code"), ""))
    return sorted(found, key=lambda one: (one.begin, one.end, one.text))


def apply(text, mutation):
    return text[:mutation.begin] + mutation.text + text[mutation.end:]
