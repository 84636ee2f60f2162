# ===- __main__.py - which kernels a model would run -----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Says which attention layers of a model would run which kernels in vLLM, and why.

    python -m posenc.vllm CONFIG [options of vllm serve]

CONFIG is the path of a config.json or of its folder. No weights are read and no memory is
taken for them, but kernels are compiled, as they are when a server loads the model. The
environment variables are those of the plug-in.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from .._errors import Error
from . import find_obstacle


def _parse(arguments: Sequence[str]) -> Any:
    """Returns vLLM's configuration of a model without weights."""
    from vllm.engine.arg_utils import EngineArgs
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = FlexibleArgumentParser(
        prog="python -m posenc.vllm", description=(__doc__ or "").split("\n\n")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", help="a config.json, or its folder")
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
        # The choice does not depend on how heads are divided among processes.
        options.tensor_parallel_size = options.pipeline_parallel_size = 1
        return EngineArgs.from_cli_args(options).create_engine_config()


def _make_layers(config: Any) -> dict[str, Any]:
    """Creates a model without memory. Returns its layers by their names."""
    import torch
    from vllm.config import set_current_vllm_config
    from vllm.distributed import (
        cleanup_dist_env_and_memory, ensure_model_parallel_initialized,
        init_distributed_environment)
    from vllm.model_executor.model_loader.utils import initialize_model
    from vllm.utils.torch_utils import set_default_torch_dtype

    with tempfile.TemporaryDirectory(prefix="posenc-") as folder:
        with set_current_vllm_config(config):
            init_distributed_environment(1, 0, f"file://{folder}/group", 0, "gloo")
            ensure_model_parallel_initialized(1, 1)
            with (set_default_torch_dtype(config.model_config.dtype),
                  torch.device("meta")):
                model = initialize_model(config)
        cleanup_dist_env_and_memory()
    layers = dict(config.compilation_config.static_forward_context)
    del model
    return layers


def main(arguments: Sequence[str]) -> int:
    # Reasons are printed.
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    try:
        obstacle = find_obstacle()
        if obstacle is not None:
            print(f"vLLM's kernels run all layers: the plug-in is not active: {obstacle}")
            return 0
        from ._report import list_choices, summarize

        choices = list_choices(_make_layers(_parse(arguments)))
    except (Error, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    from vllm import envs

    for choice in choices:
        print(f"{choice.layer}: " + ("Posenc" if choice.reason is None else
                                     f"vLLM: {choice.reason}"))
    # The plug-in adds this variable; on CUDA it leaves rotations to vLLM.
    describe = envs.environment_variables.get("POSENC_VLLM_ROPE", lambda: "vLLM's")
    print(summarize(choices, describe()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
