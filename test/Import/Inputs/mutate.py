# ===- mutate.py - damaged models end in an error --------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""mutate.py LIBPOSENC SEED COUNT MODEL...: reads each model cut off at every byte, COUNT
times with bytes that are changed at random, and COUNT times with fields of its messages
that are changed, removed, doubled or exchanged. Each is read, or is an error of the file.
The models are read in this process, so a crash ends it, and so does a model that takes
more than 20 seconds; with POSENC_KEEP=PATH in the environment, the last one is in the
file PATH."""

import ctypes
import os
import random
import signal
import sys

library = ctypes.CDLL(sys.argv[1])
library.posenc_list.restype = ctypes.c_void_p
KEEP = os.environ.get("POSENC_KEEP")
NUMBERS = [0, 1, 2, 3, 7, 64, -1, -2, -9, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, -2**63]


def read(data):
    """Returns whether the model is read, and the messages."""
    if KEEP:
        with open(KEEP, "wb") as file:
            file.write(data)
    messages = ctypes.c_void_p()
    signal.alarm(20)
    functions = library.posenc_list(b"m.onnx", data, ctypes.c_size_t(len(data)), None,
                                    ctypes.c_size_t(0), ctypes.byref(messages))
    signal.alarm(0)
    text = ctypes.string_at(messages.value).decode(errors="replace") if messages else ""
    library.posenc_messages_free(messages)
    library.posenc_messages_free(ctypes.c_void_p(functions))
    return bool(functions), text


def change_bytes(data, source):
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


def read_varint(data, at):
    number = shift = 0
    while data[at] & 128:
        number |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
    return number | data[at] << shift, at + 1


def write_varint(number):
    number &= 2**64 - 1
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes([*encoded, number])


def parse(data):
    """Returns the fields of a message, each a list [key, content], or None. The content is
    a number, bytes, or a list of fields: whatever can be a message is taken for one."""
    fields, at = [], 0
    try:
        while at < len(data):
            key, at = read_varint(data, at)
            if not 8 <= key < 512:
                return None
            if key & 7 == 0:
                content, at = read_varint(data, at)
            elif key & 7 in (1, 2, 5):
                size = {1: 8, 5: 4}.get(key & 7)
                if size is None:
                    size, at = read_varint(data, at)
                if at + size > len(data):
                    return None
                content, at = data[at:at + size], at + size
                if key & 7 == 2 and len(content) > 1:
                    content = parse(content) or content
            else:
                return None
            fields.append([key, content])
    except IndexError:
        return None
    return fields


def encode(fields):
    encoded = bytearray()
    for key, content in fields:
        if isinstance(content, list):
            content = encode(content)
        encoded += write_varint(key)
        if isinstance(content, int):
            encoded += write_varint(content)
        else:
            encoded += (write_varint(len(content)) if key & 7 == 2 else b"") + content
    return bytes(encoded)


def list_fields(fields):
    """Returns each field of a message and of those within it, with the list that has it."""
    found = []
    for field in fields:
        found.append((fields, field))
        if isinstance(field[1], list):
            found += list_fields(field[1])
    return found


def change_fields(data, source):
    message = parse(data)
    for _ in range(source.choice([1, 1, 1, 2, 3])):
        fields = list_fields(message)
        if not fields:
            break
        # Sizes, names and messages are changed as often as each other, whatever their number.
        key = source.choice(sorted({field[0] for _, field in fields}))
        owner, field = source.choice([one for one in fields if one[1][0] == key])
        _, other = source.choice([one for one in fields if one[1][0] == key])
        kind = source.randrange(6)
        if kind == 0:
            owner.remove(field)
        elif kind == 1:
            owner.insert(source.randrange(len(owner) + 1), field)
        elif kind == 2 and field is not other:
            field[1], other[1] = parse_content(other), parse_content(field)
        elif kind == 3:
            field[1] = parse_content(other)
        elif isinstance(field[1], int):
            field[1] = source.choice([*NUMBERS, field[1] + 1, field[1] - 1])
        elif isinstance(field[1], bytes) and field[1]:
            content = change_bytes(field[1], source)
            field[1] = content if field[0] & 7 == 2 else content[:len(field[1])].ljust(
                len(field[1]), b"\xff")
    return encode(message)


def parse_content(field):
    """Returns a copy of a field's content."""
    return parse(encode(field[1])) if isinstance(field[1], list) else field[1]


count = wrong = errors = 0
source = random.Random(int(sys.argv[2]))
for path in sys.argv[4:]:
    with open(path, "rb") as file:
        whole = file.read()
    if not read(whole)[0]:
        wrong += 1
        print(f"{path}: {read(whole)[1]}")
    if encode(parse(whole)) != whole:
        wrong += 1
        print(f"{path}: the fields are not those of the file")
    # Long constants are cut at some bytes only.
    inputs = [whole[:end] for end in range(0, len(whole), 1 + len(whole) // 400)]
    inputs += [change_bytes(whole, source) for _ in range(int(sys.argv[3]))]
    inputs += [change_fields(whole, source) for _ in range(int(sys.argv[3]))]
    for data in inputs:
        count += 1
        is_read, text = read(data)
        errors += not is_read
        if not is_read and not text.startswith("m.onnx: error: "):
            wrong += 1
            print(f"{path}: {text!r}")
print(f"{count} models, {wrong} wrong")
if not count / 4 < errors < count:
    print(f"only {errors} of the models are errors")
