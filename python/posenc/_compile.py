# ===- _compile.py - compilation of configs and modules --------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""`posenc.compile` and `posenc.load`."""

from __future__ import annotations

import codecs
import inspect
import json
import operator
import os
import re
import reprlib
import shutil
import subprocess
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import Any, NoReturn

from ._compiler import LibraryCode
from ._dtypes import option_of
from ._errors import CompileError, Error
from ._kernels import Kernels, build, make_kernels
from ._source import warn


def _to_plain(value):
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):  # An array, or a number of NumPy or PyTorch.
        return value.tolist()
    return str(value)


def write_json(value, **options) -> str:
    """Returns the JSON of a config or of a part of one. Numbers may be of NumPy, and
    types are written as their names."""
    try:
        return json.dumps(value, default=_to_plain, **options)
    except (TypeError, ValueError, RecursionError) as error:
        raise Error(f"cannot write a config as JSON: {error}") from None


def _to_path(path: str | os.PathLike) -> str:
    try:
        path = os.fsdecode(path)
    except TypeError as error:
        raise Error(f"{reprlib.repr(path)} is not a path: {error}") from None
    if "\0" in path:
        raise Error(f"{path!r} is not a path: it has a null character")
    return path


def _advise_model_id(path: str) -> str:
    """Says what to do if a path that cannot be read may be the id of a model."""
    is_file_name = path.endswith((".json", ".mlir", ".mlirbc", ".onnx"))
    if is_file_name or not re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", path):
        return ""
    return ("; if it is the id of a model on Hugging Face, pass "
            f"transformers.AutoConfig.from_pretrained({path!r}), or the path of its "
            "config.json")


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise Error(f"cannot read '{path}': {error.strerror}{_advise_model_id(path)}"
                    ) from None


def _is_module(text: str) -> bool:
    """Whether a string that is not JSON is the text of a module rather than a path."""
    return "\n" in text or (("func.func" in text or "{" in text)
                            and "\0" not in text and not os.path.exists(text))


def _is_config(text: bytes) -> bool:
    """Whether a text is JSON rather than MLIR, in which `{-#` begins metadata."""
    start = text.removeprefix(codecs.BOM_UTF8).lstrip()
    return start.startswith(b"{") and not start.startswith(b"{-#")


def read_source(source) -> tuple[str, bytes]:
    """Returns the name and the text of what `compile` is given."""
    if isinstance(source, str):
        text = source.encode(errors="surrogatepass")
        if _is_config(text) or _is_module(source):
            source = text  # The compiler refuses bytes that are not UTF-8.
    if isinstance(source, bytes):
        name = "config.json" if _is_config(source) else "module.mlir"
        return name, source.removeprefix(codecs.BOM_UTF8)
    if isinstance(source, (str, os.PathLike)):
        path = _to_path(source)
        if os.path.isdir(path):
            path = os.path.join(path, "config.json")
        return path, _read(path)
    if hasattr(source, "to_dict"):
        source = source.to_dict()
    if isinstance(source, Mapping):
        return "config.json", write_json(source).encode()
    raise Error(f"cannot compile a {type(source).__name__}: expected the path or the "
                "text of a config.json or of MLIR, a dict, or a config of transformers")


# ===----------------------------------------------------------------------===#
# Options
# ===----------------------------------------------------------------------===#


def _refuse(name: str, value, expected: str) -> NoReturn:
    try:
        got = reprlib.repr(value)
    except Exception:  # It has too many digits, or its own repr() fails.
        got = f"a value of type {type(value).__name__}"
    raise Error(f"{name}: expected {expected}, got {got}") from None


def _to_text(name: str, value) -> str:
    if not isinstance(value, str):
        _refuse(name, value, "a string")
    if "\0" in value:
        _refuse(name, value, "a string without null characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        _refuse(name, value, "a string that can be written as UTF-8")
    return value


def _to_number(name: str, value) -> str:
    if isinstance(value, str):
        return _to_text(name, value)
    try:
        if not isinstance(value, bool):
            return str(operator.index(value))
    except (TypeError, ValueError):  # It is no integer, or has too many digits.
        pass
    _refuse(name, value, "an integer")


def _to_names(name: str, value) -> str:
    if isinstance(value, str):
        return _to_text(name, value)
    if not isinstance(value, Collection) or isinstance(value, (bytes, Mapping)) or (
            len(value) == 0):
        _refuse(name, value, "a name or a list of names")
    if isinstance(value, Set):
        value = sorted(value, key=str)  # Equal sets are equal options.
    return ",".join(_to_text(name, element) for element in value)


def _to_type(name: str, value) -> str:
    try:
        return _to_text(name, option_of(value))
    except Error as error:
        raise Error(f"{name}: {error}") from None


def _to_file(name: str, value) -> str:
    if not isinstance(value, (str, os.PathLike)):
        _refuse(name, value, "a path")
    try:
        return _to_path(value)
    except Error as error:
        raise Error(f"{name}: {error}") from None


def _to_causal(name: str, value) -> str:
    if value is False:
        return "no"
    if not isinstance(value, str):
        _refuse(name, value, '"model", "no" or False')
    return _to_text(name, value)


def _to_yes(name: str, value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, str):
        _refuse(name, value, '"yes", "no", True or False')
    return _to_text(name, value)


# How the value of an option is written, unless it is a string.
_WRITERS = {
    "dtype": _to_type, "cache_dtype": _to_type, "kernels": _to_names,
    "decode_tokens": _to_number, "rope_length": _to_number, "stack_limit": _to_number,
    "opt_level": _to_number, "causal": _to_causal,
    "raise_": _to_yes}
_FLAGS = ("qk_norm", "lse", "no_warnings")
# Options that are paths.
_FILES = ("tuning", "schedule", "report")


def _read_files(**paths) -> dict[str, tuple[str, bytes]]:
    """Returns the flags of options that are files, with their paths and content."""
    files = {}
    for name, value in paths.items():
        if value is not None:
            path = _to_file(name, value)
            if os.path.exists(path) and not os.path.isfile(path):
                raise Error(f"{name}: '{path}' is not a regular file")
            files[f"--{name}"] = path, _read(path)
    return files


def _to_flags(options: Mapping[str, Any]) -> list[str]:
    """Returns flags of posenc-compile for keyword arguments. Each value is checked, as
    text of another kind could be read as another flag."""
    flags = []
    for name, value in options.items():
        if value is None:
            continue
        # `raise` and `assert` are words of Python, so their keywords end with `_`.
        flag = "--" + name.rstrip("_").replace("_", "-")
        if name == "target" and isinstance(value, Sequence) and not isinstance(
                value, (str, bytes)):
            if not value:
                _refuse(name, value, "a target or a list of targets")
            flags += [f"{flag}={_to_text(name, one)}" for one in value]
        elif name not in _FLAGS:
            flags.append(f"{flag}={_WRITERS.get(name, _to_text)(name, value)}")
        elif not isinstance(value, bool):
            _refuse(name, value, "True or False")
        elif value:
            flags.append(flag)
    return flags


# ===----------------------------------------------------------------------===#
# The interface
# ===----------------------------------------------------------------------===#


def compile_on_use(source, **options) -> Kernels:
    """As `compile` of a config without `kernels`, but also of MLIR: each function is
    compiled when it is first used. The options are not files."""
    name, text = read_source(source)
    return build(name, text, _to_flags(options), {}, level=2, on_use=True)


def prepare(kernels: Kernels, names: Iterable[str] | None = None) -> None:
    """Compiles functions of kernels that were not used yet, or all of them, several at
    the same time."""
    kernels._prepare(names)


def compile(source: str | os.PathLike | bytes | Mapping | Any, *,
            dtype: Any = None, kernels: str | Collection[str] | None = None,
            target: str | Sequence[str] | None = None, pairing: str | None = None,
            precision: str | None = None, k_cache: str | None = None,
            cache_dtype: Any = None, cache_scales: str | None = None,
            decode_tokens: int | None = None,
            rope_length: int | str | None = None, qk_norm: bool = False,
            index_type: str | None = None, lse: bool = False,
            rotation: str | None = None, causal: str | bool | None = None,
            threads: str | None = None, stack_limit: int | None = None,
            opt_level: int | None = None, tuning: str | os.PathLike | None = None,
            schedule: str | os.PathLike | None = None,
            raise_: str | bool | None = None, assert_: str | None = None,
            report: str | os.PathLike | None = None,
            no_warnings: bool = False) -> Kernels:
    """Compiles kernels for this machine and returns them as methods.

    source: the path of a model's config.json (or of its folder) or of an MLIR file;
        their content, as str or bytes; a dict; or a config of transformers.

    The options are those of posenc-compile; None means its default.

    dtype: element type: "f32", "bf16", "f16", "f64", or a type of NumPy or PyTorch
        (default: the config's)
    kernels: the functions to compile, such as ["rope", "decode"], or "serving"
        (default: sincos, rope, attention and decode of a config; all of a module)
    target: the CPU, such as "x86-64-v3", GPUs, such as "cuda:sm_90a", or a list of a
        CPU and GPUs (default: "host", and the device of the first input of a call)
    pairing: "half" or "interleaved" (default: the model's)
    precision: "exact", or "hf_f32" for angles rounded as in transformers (default:
        "exact" for a config, and the tables of cos and sin that a graph computes)
    k_cache: "rotated" (default) or "raw": the keys in the cache of decode
    cache_dtype: element type of the cache: "f16", "bf16", "i8", "f8e4m3", "f8e5m2", or
        a type of NumPy or PyTorch
    cache_scales: what has a scale in caches of i8 and f8: "row" (default), or "tensor"
        for one scale of all keys and one of all values, which append is given
    decode_tokens: queries per sequence in a call of decode (default: 1)
    rope_length: length that frequencies depend on: a number, or "input"
    qk_norm: attention normalizes queries and keys, with the checkpoint's weights
    index_type: "i64" (default) or "i32": the type of positions, lengths, slots and
        cu_seqlens
    lse: attention and decode return the log-sum-exp of the scores, too
    rotation: "model" (default), or "none" for functions that take queries and keys as
        they are
    causal: "model" (default), or False (or "no") for attention in which queries see
        later keys, too
    threads: "none" for code without threads (default: OpenMP)
    stack_limit: bytes of stack of a function; beyond, a workspace is allocated
    opt_level: 0 compiles faster, to slower code with the same results (default: 3)
    tuning: a file that posenc-tune wrote
    schedule: a transform-dialect module that tiles operations
    raise_: False (or "no") leaves rotations, attentions and sinusoidal tables that a
        module spells out in linalg as they are (default: True, or "yes")
    assert_: "check" (default) checks the assertions of a module, which must be
        comparisons of sizes, in each call; "drop" leaves them out
    report: a file for a page in HTML about the compilation, which is also written if it
        fails; all functions are compiled at once
    no_warnings: do not warn of slow functions and of assumptions

    Functions of `kernels` are compiled at once, several at the same time. Without it,
    those of a config are compiled when they are first used, unless there is a file.

    Compiled code is cached in the folder POSENC_CACHE ("off": nowhere), by default
    $XDG_CACHE_HOME/posenc or, if that is not set, ~/.cache/posenc.

    Returns the functions as methods. Raises Error for an option of another kind and for a
    file that cannot be read, and CompileError with the compiler's messages.
    """
    name, text = read_source(source)
    flags = _to_flags(dict(
        dtype=dtype, kernels=kernels, target=target, pairing=pairing,
        precision=precision, k_cache=k_cache, cache_dtype=cache_dtype,
        cache_scales=cache_scales, decode_tokens=decode_tokens, rope_length=rope_length,
        qk_norm=qk_norm, index_type=index_type, lse=lse, rotation=rotation, causal=causal,
        threads=threads, stack_limit=stack_limit, opt_level=opt_level, raise_=raise_,
        assert_=assert_, no_warnings=no_warnings))
    files = _read_files(tuning=tuning, schedule=schedule)
    page = None if report is None else os.path.abspath(_to_file("report", report))
    # One name is compiled as it is. Files may change until functions are used.
    is_single = isinstance(kernels, str) and "," not in kernels and kernels != "serving"
    on_use = name.endswith(".json") and not files and not is_single and page is None
    result = build(name, text, flags, files, level=2, on_use=on_use, report=page)
    if kernels is not None:
        prepare(result)
    return result


def _find_tool(name: str) -> str:
    """Returns the path of a tool: that of a wheel, or one on PATH."""
    packaged = os.path.join(os.path.dirname(__file__), "bin", name)
    path = packaged if os.path.exists(packaged) else shutil.which(
        name, path=os.pathsep.join(filter(None, [os.environ.get("POSENC_BIN"),
                                                 os.environ.get("PATH")])))
    if path is None:
        raise Error(f"expected the tool {name} on PATH: `make install` installs it, and "
                    "wheels of `make wheel` have it")
    return path


def compile_library(source: str, output: str, constants: str,
                    options: Mapping[str, Any]) -> Kernels:
    """Compiles a module to a library with a file of weights, and loads both. Its arguments
    that have names of tensors in the file `constants` are weights. `options` are those of
    `compile`; warnings are about the caller of the caller of the caller."""
    # Other flags of posenc-compile, such as --emit, would write another kind of file.
    inspect.signature(compile).bind(source, **options)
    options = {name: _to_file(name, value) if name in _FILES and value is not None else value
               for name, value in options.items()}
    warns = not options.get("no_warnings", False)
    done = subprocess.run(
        [_find_tool("posenc-compile"), source, "-o", output, f"--constants={constants}",
         "--weights=file", *_to_flags(options)], capture_output=True, text=True,
        check=False)
    messages = done.stderr.strip()
    if done.returncode:
        raise CompileError(messages or "cannot compile, without a message")
    if warns:
        warn(messages.splitlines(), 4)
    return load(output)


def load(path: str | os.PathLike, *, weights: str | os.PathLike | None = None
         ) -> Kernels:
    """Loads a kernel library, `libX.so`, that posenc-compile wrote. Returns its functions as
    methods.

    path: the path of the library, of which a copy is loaded
    weights: the file of its weights, or that file's folder with a final slash
        (default: `X.safetensors` beside the library). Libraries of which all weights
        are in the code ignore it.

    The weights are mapped, so that processes share their memory. Neither file may be
    changed while it is in use: replace it by renaming another one. Raises Error for a file
    that is no kernel library, that needs another CPU, or that lacks its weights.
    """
    return make_kernels(LibraryCode(
        _to_path(path), None if weights is None else _to_path(weights)))
