# ===- __main__.py - the kernels of a model, without a server ---------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Says which attention layers of a model would run which kernels in vLLM, and why.

    python -m posenc.vllm CONFIG [--warm] [options of vllm serve]

CONFIG is the path of a config.json or of its folder. No weights are read and no memory is
taken for them, but kernels are compiled, as they are when a server loads the model. The
environment variables are those of the plug-in.

With --warm, the cache of kernels has what each process of such a server needs afterwards,
so that servers with the same kind of processor and the same cache compile nothing. It is
an error if nothing can be cached, if the plug-in is not active, or if a kernel cannot be
compiled.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .._errors import Error
from . import find_obstacle


def _parse(arguments: Sequence[str]) -> tuple[Any, bool]:
    """Returns vLLM's configuration of a model without weights, and whether the cache is to
    be filled."""
    from vllm.engine.arg_utils import EngineArgs
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = FlexibleArgumentParser(
        prog="python -m posenc.vllm", description=(__doc__ or "").split("\n\n")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", help="a config.json, or its folder")
    parser.add_argument("--warm", action="store_true",
                        help="fill the cache of kernels for servers")
    EngineArgs.add_cli_args(parser)
    options = parser.parse_args(list(arguments))
    folder = options.config
    if not os.path.exists(folder):
        raise Error(f"cannot read '{folder}': there is no such file")
    with tempfile.TemporaryDirectory(prefix="posenc-") as copy:
        if not os.path.isdir(folder):
            shutil.copy(folder, os.path.join(copy, "config.json"))
            folder = copy
        options.model, options.load_format = folder, "dummy"
        options.skip_tokenizer_init = options.enforce_eager = True
        # All layers are made in one process. The choice does not depend on how heads are
        # divided among processes, but kernels do.
        options.pipeline_parallel_size = options.data_parallel_size = 1
        options.data_parallel_size_local = options.data_parallel_rank = None
        options.data_parallel_start_rank = None
        options.data_parallel_external_lb = options.data_parallel_hybrid_lb = False
        options.data_parallel_multi_port_external_lb = False
        if not options.warm:
            options.tensor_parallel_size = 1
        return EngineArgs.from_cli_args(options).create_engine_config(), options.warm


def _fork(function: Callable[[int], None], rank: int) -> int:
    """Calls a function in a forked process, which then ends. Returns its number."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        function(rank)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


@contextlib.contextmanager
def _join_group(config: Any) -> Iterator[None]:
    """A context in which this process is the first one of a group that divides heads. The
    others do nothing but belong to it."""
    from vllm.config import set_current_vllm_config
    from vllm.distributed import (
        cleanup_dist_env_and_memory, ensure_model_parallel_initialized,
        init_distributed_environment)

    size = config.parallel_config.tensor_parallel_size

    def join(rank: int) -> None:
        with set_current_vllm_config(config):
            init_distributed_environment(size, rank, f"file://{folder}/group", rank, "gloo")
            ensure_model_parallel_initialized(size, 1)

    with tempfile.TemporaryDirectory(prefix="posenc-") as folder:
        # The name of the memory that processes share.
        os.environ["VLLM_DIST_IDENT"] = os.path.basename(folder)
        others = [_fork(join, rank) for rank in range(1, size)]
        try:
            join(0)
            yield
            for process in list(others):
                others.remove(process)
                if os.waitpid(process, 0)[1]:
                    raise Error("a process of the group has failed")
        finally:
            for process in others:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
            cleanup_dist_env_and_memory()


def _make_layers(config: Any) -> dict[str, Any]:
    """Creates a model without memory. Returns its layers by their names."""
    import torch
    from vllm.config import set_current_vllm_config
    from vllm.model_executor.model_loader.utils import initialize_model
    from vllm.utils.torch_utils import set_default_torch_dtype

    with (_join_group(config), set_current_vllm_config(config),
          set_default_torch_dtype(config.model_config.dtype), torch.device("meta")):
        model = initialize_model(config)
    layers = dict(config.compilation_config.static_forward_context)
    del model
    return layers


def _check_cache() -> None:
    """Raises an error if servers with such a model would compile kernels, too."""
    from ._report import fallbacks, find_cache

    if find_cache() == "none":
        raise Error("POSENC_CACHE=off: there is no cache to fill")
    if fallbacks:
        raise Error(fallbacks[0])


def main(arguments: Sequence[str]) -> int:
    # Reasons are printed.
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    is_warm = "--warm" in arguments
    try:
        obstacle = find_obstacle()
        if obstacle is not None:
            if is_warm:
                raise Error(f"the plug-in is not active: {obstacle}")
            print(f"vLLM's kernels run all layers: the plug-in is not active: {obstacle}")
            return 0
        from . import _metrics
        from ._report import list_choices, summarize

        _metrics.keep_private()
        config, is_warm = _parse(arguments)
        choices = list_choices(_make_layers(config))
        # The plug-in adds this variable; on CUDA it leaves rotations to vLLM.
        from vllm import envs

        rotation = envs.environment_variables.get("POSENC_VLLM_ROPE", lambda: "vLLM's")()
        if is_warm:
            _check_cache()
    except (Error, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for choice in choices:
        print(f"{choice.layer}: " + ("Posenc" if choice.reason is None else
                                     f"vLLM: {choice.reason}"))
    print(summarize(choices, rotation))
    if is_warm:
        seconds, functions = _metrics.get_compilation()
        print(f"{functions} kernels in {seconds:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
