# ===- _metrics.py - what /metrics of a server has about the plug-in --------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Metrics for Prometheus: layers by kernels, layers that fell back by reason, and the time
of compilation.

vLLM's server and its layers are in processes of their own, and its registry of
prometheus_client has what the server's process measures. So each process with layers
writes a file, in a folder that the first process makes, and the server reads the files
when it is asked. An environment variable has the folder, as the processes inherit it.

The first process and those that it forks lock the folder, so that one without a lock is
left over."""

from __future__ import annotations

import atexit
import fcntl
import glob
import json
import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from .._fork import Lock

_FOLDER = "POSENC_VLLM_METRICS"
_PREFIX = "posenc-metrics-"
_LABELS = ("engine", "rank")

_lock = Lock()
# Of this process. Layers of models that are gone do not count.
_labels = dict.fromkeys(_LABELS, "0")
_reasons: weakref.WeakKeyDictionary[Any, str | None] = weakref.WeakKeyDictionary()
_seconds, _functions = 0.0, 0
_made: str | None = None  # the folder, if this process or the one that forked it made it
_is_private = False


def keep_private() -> None:
    """Says that nobody asks this process for its metrics, so that it needs no folder."""
    global _is_private
    _is_private = True


def share_folder() -> None:
    """Makes the folder, unless this process has made it, or is one of vLLM's below that
    process. It is removed when this process ends. Without a place for it, there is a
    warning and there are no metrics."""
    global _made
    inherited = os.environ.pop(_FOLDER, None)
    if _is_private:
        return
    # Another server below the same process has a folder of its own.
    if inherited and (inherited == _made or multiprocessing.parent_process() is not None):
        os.environ[_FOLDER] = inherited
        return
    try:
        _made = _make_folder()
    except OSError as error:
        print(f"posenc: there are no metrics: {error}", file=sys.stderr)
        return
    os.environ[_FOLDER] = _made


def _make_folder() -> str:
    _remove_old_folders()
    folder, owner = tempfile.mkdtemp(prefix=_PREFIX), os.getpid()
    # The lock ends with the last process that has the descriptor.
    _lock_folder(folder)

    def remove() -> None:
        # A process that was forked has the same functions to call at its end.
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def _lock_folder(folder: str) -> int:
    """Returns a descriptor that keeps the lock of a folder, or raises an OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _remove_old_folders() -> None:
    """Removes the folders of processes that were killed."""
    pattern = os.path.join(glob.escape(tempfile.gettempdir()), f"{_PREFIX}*")
    for folder in glob.glob(pattern):
        try:
            descriptor = _lock_folder(folder)
        except OSError:  # It is in use, or another user's.
            continue
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def set_process(engine: int, rank: int) -> None:
    """Says which engine of a data parallel server and which worker this process is."""
    _labels.update(engine=str(engine), rank=str(rank))


def record_layers(reasons: Iterable[tuple[Any, str | None]]) -> None:
    """Records layers, of which each runs Posenc's kernels, or vLLM's for a reason."""
    with _lock:
        _reasons.update(reasons)
        _write()


def record_compilation(seconds: float) -> None:
    """Records that a function was compiled, or found in the cache."""
    global _seconds, _functions
    with _lock:
        _seconds += seconds
        _functions += 1
        _write()


def get_compilation() -> tuple[float, int]:
    """Returns the seconds and the number of kernels of this process."""
    return _seconds, _functions


def _write() -> None:
    folder = os.environ.get(_FOLDER)
    if not folder or not _reasons:
        return
    content = {"labels": _labels, "reasons": list(Counter(_reasons.values()).items()),
               "seconds": _seconds, "functions": _functions}
    path = os.path.join(folder, f"{os.getpid()}.json")
    try:
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            json.dump(content, file)
        os.replace(f"{path}.new", path)
    except OSError as error:
        # A server whose disk is full goes on.
        print(f"posenc: cannot write metrics: {error}", file=sys.stderr)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _read() -> list[Mapping[str, Any]]:
    """Returns what the processes that run have written, by their labels."""
    folder = os.environ.get(_FOLDER)
    found = {}
    try:
        names = sorted(os.listdir(folder)) if folder else []
    except OSError:  # The first process has ended.
        return []
    for name in names:
        match = re.fullmatch(r"([0-9]+)\.json", name)
        if match is None or not _is_alive(int(match[1])):
            continue
        try:
            with open(os.path.join(folder or "", name), encoding="utf-8") as file:
                one = json.load(file)
        except OSError:  # Its process has ended.
            continue
        found[tuple(one["labels"][label] for label in _LABELS)] = one
    return [found[labels] for labels in sorted(found)]


class Collector:
    """A collector of prometheus_client."""

    def describe(self) -> list[Any]:
        """Returns the metrics without values, for requests of metrics by name."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        return [
            GaugeMetricFamily(
                "posenc_attention_layers", "Attention layers by the kernels that they run.",
                labels=[*_LABELS, "kernels"]),
            GaugeMetricFamily(
                "posenc_fallback_layers",
                "Attention layers that run vLLM's kernels, by the reason.",
                labels=[*_LABELS, "reason"]),
            CounterMetricFamily(
                "posenc_compile_seconds",
                "Time in which kernels were compiled or read from the cache.",
                labels=_LABELS),
            CounterMetricFamily(
                "posenc_compiled_functions",
                "Kernels that were compiled or read from the cache.", labels=_LABELS)]

    def collect(self) -> Iterable[Any]:
        layers, fallbacks, seconds, functions = self.describe()
        for one in _read():
            labels = [one["labels"][label] for label in _LABELS]
            theirs = {reason: count for reason, count in one["reasons"] if reason is not None}
            ours = sum(count for _, count in one["reasons"]) - sum(theirs.values())
            layers.add_metric([*labels, "posenc"], ours)
            layers.add_metric([*labels, "vllm"], sum(theirs.values()))
            for reason, count in theirs.items():
                fallbacks.add_metric([*labels, reason], count)
            seconds.add_metric(labels, one["seconds"])
            functions.add_metric(labels, one["functions"])
        return [layers, fallbacks, seconds, functions]


def add_to_registries(module: Any) -> None:
    """Makes `get_prometheus_registry` of vLLM's module, from which a server takes what
    /metrics answers, return registries with a collector."""
    get_registry = module.get_prometheus_registry
    if getattr(get_registry, "is_posenc", False):
        return
    known: weakref.WeakSet[Any] = weakref.WeakSet()

    def get_prometheus_registry() -> Any:
        registry = get_registry()
        if registry not in known:
            registry.register(Collector())
            known.add(registry)
        return registry

    get_prometheus_registry.is_posenc = True  # type: ignore[attr-defined]
    module.get_prometheus_registry = get_prometheus_registry
