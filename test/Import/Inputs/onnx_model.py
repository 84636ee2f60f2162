# ===- onnx_model.py - writes ONNX models ----------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Writes the messages of onnx.proto without the package onnx, malformed ones too.

    write(path, [node("Add", ["x", "y"], ["z"])], {"x": ("f32", ["n", 4]), ...}, ["z"])
"""

import struct

TYPES = {"f32": 1, "u8": 2, "i8": 3, "u16": 4, "i16": 5, "i32": 6, "i64": 7, "string": 8,
         "bool": 9, "f16": 10, "f64": 11, "u64": 13, "bf16": 16, "u4": 21, "i4": 22}
FORMATS = {"f32": "f", "i8": "b", "i32": "i", "i64": "q", "bool": "?", "f16": "e",
           "f64": "d"}


def varint(value):
    value &= (1 << 64) - 1
    data = b""
    while value >= 128:
        data += bytes([value & 127 | 128])
        value >>= 7
    return data + bytes([value])


def field(number, value):
    """A field with an integer, or bytes or text."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields(number, values):
    return b"".join(field(number, value) for value in values)


def float_field(number, value):
    return varint(number << 3 | 5) + struct.pack("<f", value)


def tensor(name, kind, dims, values=None, raw=None, external=None):
    """A TensorProto with raw data, or external data: a dict."""
    data = fields(1, dims) + field(2, TYPES[kind]) + field(8, name)
    if external is not None:
        for key, value in external.items():
            data += field(13, field(1, key) + field(2, value))
        return data + field(14, 1)
    if raw is None:
        raw = struct.pack(f"<{len(values)}{FORMATS[kind]}", *values)
    return data + field(9, raw)


def attribute(name, value):
    """An AttributeProto with its type, which is required."""
    def create(kind, data):
        return field(1, name) + data + field(20, kind)
    if isinstance(value, float):
        return create(1, float_field(2, value))
    if isinstance(value, int):
        return create(2, field(3, value))
    if isinstance(value, str):
        return create(3, field(4, value))
    if isinstance(value, bytes):
        return create(4, field(5, value))
    if isinstance(value, dict):  # A graph: the arguments of graph().
        return create(5, field(6, graph(**value) if value else b""))
    if value and isinstance(value[0], float):
        return create(6, b"".join(float_field(7, one) for one in value))
    return create(7, fields(8, value))


def node(op, inputs, outputs, domain="", name="", **attributes):
    data = fields(1, inputs) + fields(2, outputs) + field(4, op)
    if name:
        data += field(3, name)
    if domain:
        data += field(7, domain)
    return data + fields(5, [attribute(*item) for item in attributes.items()])


def value_info(name, kind, dims):
    shape = fields(1, [field(2, dim) if isinstance(dim, str) else
                       b"" if dim is None else field(1, dim) for dim in dims])
    return field(1, name) + field(2, field(1, field(1, TYPES[kind]) + field(2, shape)))


def graph(nodes, inputs, outputs, initializers=(), name="main"):
    """`inputs` is a dict of types and shapes; so is `outputs`, or a list of names, whose
    types are not given."""
    infos = [value_info(key, *value) for key, value in outputs.items()] \
        if isinstance(outputs, dict) else [field(1, output) for output in outputs]
    return (fields(1, nodes) + field(2, name) + fields(5, initializers) +
            fields(11, [value_info(key, *value) for key, value in inputs.items()]) +
            fields(12, infos))


def model(*parts, opset=23, **keywords):
    return (field(1, 10) + field(7, graph(*parts, **keywords)) +
            field(8, field(2, opset)) +
            field(8, field(1, "com.microsoft") + field(2, 1)))


def write(path, *parts, **keywords):
    with open(path, "wb") as file:
        file.write(model(*parts, **keywords))
