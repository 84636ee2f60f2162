# ===- _sharding.py - which dimensions devices may divide -------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Which dimensions of a function's arrays may be divided among devices, so that each
device computes its part of the results by a local kernel.

Sizes of the batch and of the heads follow from the metadata of a function, if it is of a
config or of MLIR that this package writes. Other modules may do anything, so their
arrays are whole, unless `divide` says more. Numbers of heads are constants of a kernel;
a device with some of them has another kernel, which is checked to have the same metadata
but for these numbers.
"""

from __future__ import annotations

import base64
import json
import re
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ._errors import Error
from ._kernels import Kernels, compile_spec, known_kernels
from ._once import once
from ._spec import is_length_dependent, is_of_config

# What divides dimensions. Those of query heads and of key heads are divided alike.
BATCH, TOKENS, HEADS, KEY_HEADS = "batch", "tokens", "heads", "key_heads"

Dims = tuple[str | None, ...]


class Rule(NamedTuple):
    """What divides each dimension of the inputs and of the outputs of a function; None
    for dimensions that are whole."""

    inputs: tuple[Dims, ...]  # () for numbers
    outputs: tuple[Dims, ...]
    heads: int = 1
    key_heads: int = 1
    # Returns the kernels for a part of the heads, of so many equal ones.
    find_local: Callable[[int], Kernels] | None = None

    def list_factors(self) -> list[str]:
        """Returns what divides dimensions: the batch and heads first."""
        found = dict.fromkeys(get_divided(name) for dims in self.inputs for name in dims
                              if name is not None)
        return sorted(found, key=lambda name: name not in (BATCH, HEADS))

    @property
    def head_parts(self) -> int:
        """Numbers of equal parts of the heads divide this."""
        return self.key_heads if self.key_heads > 1 else self.heads

    def fit(self, shapes: Sequence[Sequence[int]]) -> Rule:
        """Returns the rule for inputs of such shapes, without what divides dimensions of
        different sizes, such as a captured array with more elements than heads."""
        sizes: dict[str, set[int]] = {HEADS: {self.heads}, KEY_HEADS: {self.key_heads}}
        for names, shape in zip(self.inputs, shapes):
            for name, size in zip(names, shape):
                if name is not None:
                    sizes.setdefault(name, set()).add(size)
        differ = {get_divided(name) for name, found in sizes.items() if len(found) > 1}
        return self.drop(differ) if differ else self

    def drop(self, factors: Collection[str]) -> Rule:
        """Returns a rule in which such factors divide nothing."""
        return _replace(self, lambda name: (
            None if get_divided(name) in factors else name))


def get_divided(name: str) -> str:
    """Returns what is divided where a dimension is: query heads go with key heads."""
    return HEADS if name == KEY_HEADS else name


class Declaration(NamedTuple):
    """What a module that this package wrote says of its functions."""

    # Returns what divides the dimensions of an argument, of the name of the function and
    # the metadata of the argument.
    find_dims: Callable[[str, Mapping], Dims]
    heads: int
    key_heads: int
    find_local: Callable[[int], Kernels] | None


# By the `_spec` of kernels.

class _Declared:
    """A declaration that lives as long as its kernels."""

    def __init__(self, declaration: Declaration):
        self.declaration = declaration


_declared: weakref.WeakValueDictionary[str, _Declared] = weakref.WeakValueDictionary()


def declare(kernels: Kernels, make: Callable[[], Declaration]) -> Kernels:
    """Says which dimensions of functions may be divided, and returns the kernels."""
    if kernels._declared is None:
        assert kernels._spec is not None
        kernels._declared = _declared[kernels._spec] = _Declared(make())
    return kernels


def divide(kernels: Kernels, *sizes: str) -> Kernels:
    """Says of a module's kernels that each index of such sizes is computed on its own, such
    as "tokens" of a table of positions, so that devices may divide arrays by them under
    `jax.jit` and as DTensors. Sizes are those of help(kernels). A function divides by a
    size that all its results have. Returns the kernels.

    Kernels of a config and of `posenc.functional` need no such call. Raises Error for them, for
    loaded libraries, and for a size that no function has."""
    functions = [kernels._describe(name) for name in kernels]
    known = {name for function in functions for name in function["sizes"]}
    for size in sizes:
        if size not in known:
            raise Error(f"no function has a size '{size}': there are "
                        f"{', '.join(sorted(known)) or 'none'}")
    if kernels._spec is None or is_of_config(kernels._spec):
        raise Error("expected kernels that posenc.compile has made of a module: those of "
                    "a config are divided already, and a loaded library has no source")
    allowed = {function["name"]: [one for one in sizes if _has_results(function, one)]
               for function in functions}

    def find(function: str, argument: Mapping) -> Dims:
        return tuple(size if size in allowed[function] else None
                     for size in argument["shape"])

    return declare(kernels, lambda: Declaration(find, 1, 1, None))


def _has_results(function: Mapping, size: str) -> bool:
    """Whether all results have a size, and no other size is computed from it."""
    word = re.compile(rf"\b{re.escape(size)}\b")
    others = [one for key in ("inputs", "outputs") for argument in function[key]
              for one in argument.get("shape", ()) if one != size]
    return (all(size in output["shape"] for output in function["outputs"])
            and not any(word.search(str(one)) for one in others))


def find_rule(spec: str | None, function: Mapping) -> Rule | None:
    """Returns the rule of a function, of its metadata; None if all arrays are whole."""
    if spec is None:
        return None
    holder = _declared.get(spec)
    declared = holder.declaration if holder else None
    if declared is None and is_of_config(spec):
        declared = _declare_config(spec, function)
    if declared is None:
        return None
    inputs, outputs = (
        tuple(declared.find_dims(function["name"], one) if one["kind"] == "tensor" else ()
              for one in function[key]) for key in ("inputs", "outputs"))
    rule = Rule(inputs, outputs, *declared[1:])
    if declared.find_local is None:
        rule = rule.drop({HEADS})
    elif rule.key_heads == 1:  # It is whole where query heads are divided.
        rule = _replace(rule, lambda name: None if name == KEY_HEADS else name)
    return rule if any(map(any, rule.inputs + rule.outputs)) else None


def _replace(rule: Rule, replace: Callable[[str], str | None]) -> Rule:
    inputs, outputs = (
        tuple(tuple(name and replace(name) for name in dims) for dims in part)
        for part in (rule.inputs, rule.outputs))
    return rule._replace(inputs=inputs, outputs=outputs)


def divide_heads(heads: int, key_heads: int, count: int) -> dict[str, Any]:
    """Returns the numbers of heads of one of `count` equal parts."""
    return {"heads": heads // count, "key_heads": max(key_heads // count, 1)}


# ===----------------------------------------------------------------------===#
# Layouts
# ===----------------------------------------------------------------------===#

_QUERIES = ("q", "o", "q_out")
_KEYS = ("k", "v", "k_out")
_CACHES = ("k_cache", "v_cache", "k_pages", "v_pages")
# Arrays that are the same for all heads.
_SHARED = ("positions", "lengths", "slots", "cu_seqlens", "cu_seqlens_q", "cu_seqlens_k",
           "block_table", "cache_seqlens", "mask", "cos", "sin")


def find_head_dim(argument: Mapping) -> tuple[int, str] | None:
    """Returns the dimension of heads and whose they are; None if there are none. Raises
    KeyError for an array of another kind."""
    name, rank = argument["name"], len(argument["shape"])
    if name in _QUERIES:
        return rank - 2, HEADS
    if name in _KEYS:
        return rank - 2, KEY_HEADS
    if name.removesuffix("_out") in _CACHES:
        return 1, KEY_HEADS
    if name in ("lse", "sinks", "alibi_slopes"):
        return rank - 1, HEADS
    if name in _SHARED:
        return None
    raise KeyError(name)


def find_dims(argument: Mapping, sizes: Sequence[str]) -> Dims:
    """Returns what divides the dimensions of an argument: those of the sizes named, and
    heads."""
    dims: list[str | None] = [size if size in sizes else None
                              for size in argument["shape"]]
    if argument["name"] == "alibi_slopes" and len(dims) == 2 and BATCH in sizes:
        dims[0] = BATCH
    found = find_head_dim(argument)
    if found is not None:
        assert isinstance(argument["shape"][found[0]], int)
        dims[found[0]] = found[1]
    return tuple(dims)


# ===----------------------------------------------------------------------===#
# Configs
# ===----------------------------------------------------------------------===#


def _declare_config(spec: str, function: Mapping) -> Declaration:
    name = function["name"]
    sizes: list[str] = []
    if not is_length_dependent(spec, name):
        sizes.append(BATCH)
        if name.split("_")[0] in ("rope", "sincos"):
            sizes.append(TOKENS)  # with their positions
    arguments = [one for key in ("inputs", "outputs") for one in function[key]
                 if one["kind"] == "tensor"]
    numbers: dict[str, int] = {}
    try:
        for argument in arguments:
            found = find_head_dim(argument)
            if found is not None:
                numbers[found[1]] = argument["shape"][found[0]]
        has_heads = "of the head" not in function.get("doc", "")  # of ALiBi
    except KeyError:
        has_heads = False
    key_heads = numbers.get(KEY_HEADS, 1)
    has_heads = has_heads and bool(numbers) and _read_heads(spec) is not None

    def find(_, argument: Mapping) -> Dims:
        if has_heads:
            return find_dims(argument, sizes)
        return tuple(size if size in sizes else None for size in argument["shape"])

    return Declaration(
        find, numbers.get(HEADS, key_heads), key_heads,
        (lambda count: _compile_local(spec, name, count)) if has_heads else None)


def _read_heads(spec: str) -> dict | None:
    """Returns the config of a spec if its numbers of heads can be replaced."""
    fields = json.loads(spec)
    config = json.loads(base64.b64decode(fields["source"]))
    heads = config.get("num_attention_heads")
    if not isinstance(heads, int) or heads < 1 or fields["files"]:
        return None
    if config.get("num_key_value_heads") is None:
        config["num_key_value_heads"] = heads
    if config.get("head_dim") is None:
        if not isinstance(config.get("hidden_size"), int):
            return None
        config["head_dim"] = config["hidden_size"] // heads
    return config


@once
def _compile_local(spec: str, name: str, count: int) -> Kernels:
    """Returns the kernels of a config for one of `count` equal parts of the heads."""
    config = _read_heads(spec)
    assert config is not None
    parts = divide_heads(config["num_attention_heads"], config["num_key_value_heads"],
                         count)
    config.update(num_attention_heads=parts["heads"],
                  num_key_value_heads=parts["key_heads"])
    fields = json.loads(spec)
    fields["source"] = base64.b64encode(json.dumps(config).encode()).decode()
    fields["on_use"] = True
    fields["flags"] = [flag for flag in fields["flags"]
                       if not flag.startswith("--kernels=")] + [f"--kernels={name}"]
    local = compile_spec(json.dumps(fields))
    whole = _describe(spec, name)
    if _divide_heads(whole, count) != _strip(local._describe(name)):
        raise Error(f"{name}: cannot compile the model for {count} parts of its heads, "
                    "as its config has other numbers that depend on them: divide the "
                    "batch instead")
    return local


def _describe(spec: str, name: str) -> dict:
    kernels = known_kernels.get(spec)
    return (compile_spec(spec) if kernels is None else kernels)._describe(name)


def _strip(function: Mapping) -> dict[str, Any]:
    """Returns what a function's metadata says of its meaning."""
    return {"doc": function.get("doc"), "arguments": [
        (one["name"], one["dtype"], list(one.get("shape", ())))
        for key in ("inputs", "outputs") for one in function[key]]}


def _divide_heads(function: Mapping, count: int) -> dict[str, Any]:
    result = _strip(function)
    for name, _, shape in result["arguments"]:
        found = find_head_dim({"name": name, "shape": shape}) if shape else None
        if found is not None:
            shape[found[0]] = max(shape[found[0]] // count, 1)
    return result
