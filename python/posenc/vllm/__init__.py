# ===- __init__.py - a plug-in for vLLM ------------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Attention and rotations in vLLM.

vLLM finds `register` by the entry point `posenc` of `vllm.general_plugins` and calls it in
each of its processes. On CPUs vLLM then chooses the backend POSENC where it would choose
its own CPU_ATTN. Layers that the kernels do not support keep vLLM's, and the log says why.

Environment variables:

POSENC_VLLM: `off` (0, false, no) leaves vLLM as it is; `on` (1, true, yes) is the default;
    `force` runs Posenc's kernels also where vLLM's were faster; `require` makes it an error
    if the plug-in is not active, or if a layer keeps vLLM's kernels for another reason than
    speed; `cuda` also replaces the backend FLASH_ATTN if vLLM runs on CUDA
POSENC_VLLM_ROPE: what rotates queries and keys where vLLM's class is `RotaryEmbedding`
    itself: `table` (kernels that read vLLM's table of cos and sin), `exact` (kernels that
    compute exact angles, so tokens may differ from vLLM's) or `off` (vLLM's operator)

`python -m posenc.vllm CONFIG` says which layers of a model would run which kernels.
"""

from __future__ import annotations

from collections.abc import Callable

from .._errors import Error
from ._options import get_mode, get_rotation

__all__ = ["register"]

# vLLM has no stable interface for attention backends of other packages, so the plug-in
# is only active with the minor version that its tests run.
_TESTED = "0.32"


def find_obstacle() -> str | None:
    """Returns why the plug-in is not active, or None. If it is required, that is an
    error."""
    mode = get_mode()
    obstacle = "POSENC_VLLM=off" if mode == "off" else _find_obstacle(mode)
    if obstacle is not None and mode == "require":
        raise Error(f"POSENC_VLLM=require: the plug-in is not active: {obstacle}")
    return obstacle


def _find_obstacle(mode: str) -> str | None:
    import vllm
    from vllm.platforms import current_platform as platform

    version = vllm.__version__
    if version.split(".")[:2] != _TESTED.split("."):
        return f"it is tested with vLLM {_TESTED}, and this is vLLM {version}"
    if platform.is_cuda():
        if mode in ("cuda", "force"):
            return None
        return ("its kernels for CUDA have run in an interpreter only. POSENC_VLLM=cuda "
                "activates it")
    if not platform.is_cpu():
        return f"it is for CPUs and CUDA, and vLLM runs on '{platform.device_type}'"
    return None


def register() -> None:
    """Registers the attention backend and the rotary embedding. vLLM may call this
    several times in a process."""
    mode = get_mode()
    if mode == "off":
        return
    obstacle = find_obstacle()
    if obstacle is not None:
        from vllm.logger import init_logger

        # vLLM shows messages of lower levels only after it has loaded plug-ins.
        init_logger("vllm.posenc").warning("Posenc's plug-in is not active: %s.", obstacle)
        return
    from vllm import envs
    from vllm.platforms import current_platform
    from vllm.v1.metrics import prometheus

    from . import _metrics, _platform

    _metrics.share_folder()
    _metrics.add_to_registries(prometheus)
    if current_platform.is_cuda():
        _platform.replace_flash_attention()
        return
    rotation = get_rotation()
    _platform.register_backend(current_platform)
    describe: Callable[[], str] = get_rotation
    if rotation != "off":
        from ._rotary import describe, register_rotary_embedding

        register_rotary_embedding(rotation)
    # Graphs that vLLM caches call the rotation, so it is a part of their key.
    envs.environment_variables["POSENC_VLLM_ROPE"] = describe
