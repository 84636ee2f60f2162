# ===- _compiler.py - the C interface of the compiler ----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The compiler: the functions of posenc-c/Compile.h, by ctypes."""

from __future__ import annotations

import ctypes
import hashlib
import json
import keyword
import os
import re
import sys
import tempfile
from collections.abc import Sequence

from ._errors import CompileError, Error
from ._fork import Lock, fork_gate

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")
_lock = Lock()
_libraries: dict[str, ctypes.CDLL] = {}


def open_library(name: str) -> ctypes.CDLL:
    """Opens a library of the package, or of the folder POSENC_LIBRARY_PATH."""
    with _lock:
        if name not in _libraries:
            folder = os.environ.get("POSENC_LIBRARY_PATH") or _FOLDER
            path = os.path.join(folder, name)
            try:
                _libraries[name] = ctypes.CDLL(path)
            except OSError as error:
                message = f"cannot open {path}: {error}"
                missing = re.search(r"lib(LLVM|MLIR)\.so\S*", str(error))
                if missing:
                    message += ("; install LLVM 22 (Debian's packages libllvm22 and "
                                "libmlir-22)")
                raise Error(message) from None
        return _libraries[name]


def _declare(library: ctypes.CDLL, name: str, result, *arguments):
    try:
        function = getattr(library, name)
    except AttributeError:
        raise Error(f"{library._name} has no function {name}: it is of another version of "
                    "this package") from None
    function.restype = result
    function.argtypes = arguments
    return function


class _Compiler:
    """The declared functions of libPosenc.so. ctypes releases the GIL in calls."""

    def __init__(self):
        library = open_library("libPosenc.so")
        pointer, text = ctypes.c_void_p, ctypes.c_char_p
        self.compile = _declare(
            library, "posenc_compile", pointer, text, text, ctypes.c_size_t,
            ctypes.POINTER(text), ctypes.c_size_t, ctypes.POINTER(pointer))
        self.list = _declare(
            library, "posenc_list", pointer, *self.compile.argtypes or ())
        self.metadata = _declare(library, "posenc_kernels_metadata", text, pointer)
        self.symbol = _declare(library, "posenc_kernels_symbol", pointer, pointer, text)
        self.free = _declare(library, "posenc_kernels_free", None, pointer)
        self.free_messages = _declare(library, "posenc_messages_free", None, pointer)
        # ptxas is looked for among the packages of this Python.
        folders = [os.fsencode(folder) for folder in sys.path if isinstance(folder, str)]
        _declare(library, "posenc_set_package_folders", None, ctypes.POINTER(text),
                 ctypes.c_size_t)((text * len(folders))(*folders), len(folders))


_compiler: _Compiler | None = None


def _get_compiler() -> _Compiler:
    global _compiler
    if _compiler is None:
        _compiler = _Compiler()
    return _compiler


# The compiler's flags that are keywords of `posenc.compile`.
_FLAG = re.compile(
    r"--(dtype|kernels|target|pairing|precision|k-cache|cache-dtype|cache-scales|decode-tokens|"
    r"rope-length|qk-norm|index-type|lse|rotation|causal|threads|stack-limit|opt-level|"
    r"tuning|schedule|raise|assert|report|no-warnings)\b")


def _name_keywords(text: str) -> str:
    """Writes flags of the compiler as keywords: `--stack-limit=64` as `stack_limit=64`."""
    def write(found: re.Match) -> str:
        name = found[1].replace("-", "_")
        return name + "_" if keyword.iskeyword(name) else name

    return _FLAG.sub(write, text)


def _run(function: str, name: str, source: bytes,
         options: Sequence[str]) -> tuple[_Compiler, int, list[str]]:
    """Calls `compile` or `list` of the compiler. Returns what it does, which is not 0,
    and its warnings."""
    flags = (ctypes.c_char_p * len(options))(*map(os.fsencode, options))
    messages = ctypes.c_void_p()
    with fork_gate:
        compiler = _get_compiler()
        result = getattr(compiler, function)(
            os.fsencode(name), source, len(source), flags, len(options),
            ctypes.byref(messages))
    message = ctypes.string_at(messages.value) if messages.value else b""
    text = _name_keywords(message.decode(errors="replace"))
    compiler.free_messages(messages)
    if not result:
        raise CompileError(text.strip() or "cannot compile, without a message")
    return compiler, result, text.splitlines()


class Listing:
    """The functions that would be compiled, with their documentation."""

    def __init__(self, name: str, source: bytes, options: Sequence[str]):
        compiler, text, self.warnings = _run("list", name, source, options)
        fields = json.loads(ctypes.string_at(text))
        compiler.free_messages(text)
        self.targets: list[str] = fields["targets"]
        self.functions: list[dict] = fields["functions"]


class CompiledCode:
    """Kernels in memory; their code is freed with this object."""

    _handle: int | None = None

    def __init__(self, name: str, source: bytes, options: Sequence[str]):
        compiler, self._handle, self.warnings = _run("compile", name, source, options)
        self._free = compiler.free
        self._symbol = compiler.symbol
        self.metadata = compiler.metadata(self._handle).decode()

    def symbol(self, name: str) -> int | None:
        """Returns the address of an exported symbol."""
        with fork_gate:
            return self._symbol(self._handle, name.encode())

    def __del__(self):
        if self._handle:
            # This takes locks of these kernels alone, so a fork need not wait for it.
            self._free(self._handle)


class _LoadedLibrary:
    """A kernel library that the system's loader has loaded, with its weights."""

    def __init__(self, path: str, weights: str):
        runtime = open_library("libposenc_runtime.so")
        pointer, text = ctypes.c_void_p, ctypes.c_char_p
        open_kernels = _declare(
            runtime, "posenc_library_open_with_weights", ctypes.c_int32, text, text,
            ctypes.POINTER(pointer))
        close = _declare(runtime, "posenc_library_close", None, pointer)
        metadata = _declare(runtime, "posenc_library_metadata", text, pointer)
        last_error = _declare(runtime, "posenc_last_error", text)
        # The runtime checks the file before the system's loader sees it.
        handle = pointer()
        if open_kernels(os.fsencode(path), os.fsencode(weights), ctypes.byref(handle)):
            raise Error(last_error().decode(errors="replace"))
        try:
            self.metadata = metadata(handle).decode()
            self.code = ctypes.CDLL(path)
        except OSError as error:
            raise Error(f"{path}: {error}") from None
        finally:
            close(handle)


# The loaded libraries by the hash of their content, and the weights that were asked
# for. They are never unloaded.
_loaded: dict[tuple[bytes, str | None], _LoadedLibrary] = {}
_loading = Lock()


def _load_library(path: str, weights: str | None) -> _LoadedLibrary:
    """Loads a kernel library from a copy of its file. A file that is rewritten in place
    would change code that is loaded from it, and the system's loader would return the
    old code of a rewritten file, since it has the same name. The copy has its weights
    where they are."""
    # A final slash makes it the folder of the file, whose name the library knows.
    place = weights or os.path.join(os.path.dirname(os.path.realpath(path)), "")
    if not os.path.isfile(path):
        return _LoadedLibrary(path, place)  # Raises an error.
    path = os.path.abspath(path)
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise Error(f"cannot read '{path}': {error.strerror}") from None
    key = hashlib.sha256(content).digest(), weights
    with _loading:
        if key not in _loaded:
            _loaded[key] = (_load_copy(os.path.basename(path), content, place)
                            or _LoadedLibrary(path, place))
        return _loaded[key]


def _load_copy(name: str, content: bytes, weights: str) -> _LoadedLibrary | None:
    """Returns None for a bad library, whose error is to have the path of its file, and
    if there is no folder for temporary files that code can be loaded from."""
    try:
        with tempfile.TemporaryDirectory(prefix="posenc-") as folder:
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(content)
            # What is loaded needs no name, so the copy is deleted.
            return _LoadedLibrary(path, weights)
    except (OSError, Error):
        return None


class LibraryCode:
    """A kernel library that posenc-compile wrote."""

    def __init__(self, path: str, weights: str | None = None):
        library = _load_library(path, weights)
        self.metadata, self._code = library.metadata, library.code
        self.warnings: list[str] = []

    def symbol(self, name: str) -> int | None:
        """Returns the address of an exported symbol."""
        try:
            function = getattr(self._code, name)
        except AttributeError:
            return None
        return ctypes.cast(function, ctypes.c_void_p).value
