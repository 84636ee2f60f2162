# ===- hlo-mutate.py - damaged StableHLO ends in an error -------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""hlo-mutate.py LIBPOSENC SEED COUNT FILE...: reads each module of the files COUNT times
with tokens that are deleted, doubled, exchanged or changed at random. Each is read, or is
an error with a location. The modules are read in this process, so a crash ends it, and so does
a module that takes more than 20 seconds; with POSENC_KEEP=PATH in the environment, the
last one is in the file PATH."""

import ctypes
import os
import random
import re
import signal
import sys

library = ctypes.CDLL(sys.argv[1])
library.posenc_list.restype = ctypes.c_void_p
KEEP = os.environ.get("POSENC_KEEP")
TOKEN = re.compile(r"\s+|[%@#^]?[\w.$]+|\"[^\"]*\"|->|.", re.DOTALL)


def read(text):
    """Returns whether the module is read, and the messages."""
    if KEEP:
        with open(KEEP, "w", encoding="utf-8") as file:
            file.write(text)
    data = text.encode()
    messages = ctypes.c_void_p()
    signal.alarm(20)
    functions = library.posenc_list(b"m.mlir", data, ctypes.c_size_t(len(data)), None,
                                    ctypes.c_size_t(0), ctypes.byref(messages))
    signal.alarm(0)
    text = ctypes.string_at(messages.value).decode(errors="replace") if messages else ""
    library.posenc_messages_free(messages)
    library.posenc_messages_free(ctypes.c_void_p(functions))
    return bool(functions), text


def mutate(tokens, source):
    changed = list(tokens)
    for _ in range(source.choice([1, 1, 1, 2, 3])):
        places = [at for at, token in enumerate(changed) if not token.isspace()]
        at = source.choice(places)
        kind = source.randrange(6)
        numbers = [at for at in places if changed[at].isdigit()]
        if kind == 0:
            del changed[at]
        elif kind == 1:
            changed.insert(at, changed[at] + " ")
        elif kind == 2:
            other = source.choice(places)
            changed[at], changed[other] = changed[other], changed[at]
        elif kind == 3:
            changed[at] = source.choice([token for token in tokens if not token.isspace()])
        elif numbers:
            at = source.choice(numbers)
            changed[at] = source.choice(["0", "1", "2", "-1", "3", "7", "?", "4294967296",
                                         "9223372036854775807"])
    return "".join(changed)


count = wrong = errors = 0
source = random.Random(int(sys.argv[2]))
for path in sys.argv[4:]:
    with open(path, encoding="utf-8") as file:
        modules = re.sub(r"^//(?! -----).*$", "", file.read(), flags=re.M).split("// -----")
    for module in modules:
        if not read(module)[0]:
            wrong += 1
            print(f"{path}: {read(module)[1]}")
        # Types such as 4x6xf32 are tokens of one number each.
        tokens = TOKEN.findall(re.sub(r"(\d)x(?=[\d?a-z])", r"\1\0x\0", module))
        tokens = [part for token in tokens for part in re.split("\0", token) if part]
        for _ in range(int(sys.argv[3])):
            count += 1
            mutated = mutate(tokens, source)
            is_read, text = read(mutated)
            errors += not is_read
            if not is_read and not re.search(r"^[^ :]+(:\d+:\d+)?: error: ", text, re.M):
                wrong += 1
                print(f"{path}: {text!r}")
            if "internal error" in text:
                sys.exit(f"a crash by:\n{mutated}")
print(f"{count} modules, {wrong} wrong")
if not count / 4 < errors < count:
    print(f"only {errors} of the modules are errors")
