# ===- mutate.py - damaged models end in an error --------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""mutate.py LIBPOSENC MODEL...: reads each model cut off at every byte, and with bytes
that are changed at random. Each is read, or is an error of the file. The models are
read in this process, so a crash ends it."""

import ctypes
import random
import sys

library = ctypes.CDLL(sys.argv[1])
library.posenc_list.restype = ctypes.c_void_p


def read(data):
    """Returns whether the model is read, and the messages."""
    messages = ctypes.c_void_p()
    functions = library.posenc_list(b"m.onnx", data, ctypes.c_size_t(len(data)), None,
                                    ctypes.c_size_t(0), ctypes.byref(messages))
    text = ctypes.string_at(messages.value).decode(errors="replace")
    library.posenc_messages_free(messages)
    library.posenc_messages_free(ctypes.c_void_p(functions))
    return bool(functions), text


def mutate(data, source):
    changed = bytearray(data)
    kind = source.randrange(4)
    for _ in range(source.choice([1, 1, 2, 4])):
        at = source.randrange(len(changed))
        if kind == 0:
            changed[at] ^= 1 << source.randrange(8)
        elif kind == 1:
            changed[at] = source.choice([0, 1, 2, 127, 128, 255])
        elif kind == 2:
            del changed[at:at + source.randrange(1, 4)]
        else:
            first = source.randrange(len(data))
            changed[at:at] = data[first:first + source.randrange(1, 32)]
        if not changed:
            break
    return bytes(changed)


count = wrong = errors = 0
source = random.Random(7)
for path in sys.argv[2:]:
    with open(path, "rb") as file:
        whole = file.read()
    if not read(whole)[0]:
        wrong += 1
        print(f"{path}: {read(whole)[1]}")
    # Long constants are cut at some bytes only.
    cuts = [whole[:end] for end in range(0, len(whole), 1 + len(whole) // 400)]
    for data in cuts + [mutate(whole, source) for _ in range(200)]:
        count += 1
        is_read, text = read(data)
        errors += not is_read
        if not is_read and not text.startswith("m.onnx: error: "):
            wrong += 1
            print(f"{path}: {text!r}")
print(f"{count} models, {wrong} wrong")
if not count / 4 < errors < count:
    print(f"only {errors} of the models are errors")
