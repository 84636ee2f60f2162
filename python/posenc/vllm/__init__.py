# ===- __init__.py - a plug-in for vLLM ------------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Attention and rotations in vLLM.

vLLM finds `register` by the entry point `posenc` of `vllm.general_plugins` and calls it in
each of its processes. On CPUs it puts kernels of Posenc in the place of vLLM's backend
CPU_ATTN. Layers that the kernels do not support keep vLLM's, and the log says why.

Environment variables:

POSENC_VLLM: 0 leaves vLLM as it is; cuda replaces the backend FLASH_ATTN, if vLLM runs on
    CUDA
POSENC_VLLM_ROPE: what rotates queries and keys where vLLM's class is `RotaryEmbedding`
    itself: `table` (kernels that read vLLM's table of cos and sin), `exact` (kernels that
    compute exact angles, so tokens may differ from vLLM's) or `off` (vLLM's operator)
"""

from __future__ import annotations

import os

from .._errors import Error

__all__ = ["register"]

# vLLM has no stable interface for attention backends of other packages, so the plug-in
# is only active with the minor version that its tests run.
_TESTED = "0.32"
_ROTATIONS = ("table", "exact", "off")


def get_rotation() -> str:
    """Returns what rotates queries and keys."""
    rotation = os.environ.get("POSENC_VLLM_ROPE", _ROTATIONS[0])
    if rotation not in _ROTATIONS:
        raise Error(f"POSENC_VLLM_ROPE is '{rotation}', expected one of "
                    f"{', '.join(_ROTATIONS)}")
    return rotation


def register() -> None:
    """Registers the attention backend and the rotary embedding. vLLM may call this
    several times in a process."""
    if os.environ.get("POSENC_VLLM", "1") == "0":
        return
    import vllm
    from vllm import envs
    from vllm.logger import init_logger
    from vllm.platforms import current_platform
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    logger = init_logger("vllm.posenc")
    if vllm.__version__.split(".")[:2] != _TESTED.split("."):
        # vLLM shows messages of lower levels only after it has loaded plug-ins.
        logger.warning("Posenc's plug-in is not active: it is tested with vLLM %s, and "
                       "this is vLLM %s.", _TESTED, vllm.__version__)
        return
    if current_platform.is_cuda():
        if os.environ.get("POSENC_VLLM") == "cuda":
            register_backend(AttentionBackendEnum.FLASH_ATTN,
                             "posenc.vllm._cuda_backend.CudaBackend")
        else:
            logger.warning("Posenc's plug-in is not active: its kernels for CUDA have run "
                           "in an interpreter only. POSENC_VLLM=cuda activates it.")
        return
    if not current_platform.is_cpu():
        logger.info("Posenc's plug-in is not active: it is for CPUs and CUDA, and vLLM "
                    "runs on '%s'.", current_platform.device_type)
        return
    rotation = get_rotation()
    # Graphs that vLLM caches call the rotation, so it is a part of their key.
    envs.environment_variables["POSENC_VLLM_ROPE"] = get_rotation
    # The platform of CPUs ignores --attention-backend, but takes the class of CPU_ATTN
    # from this registry.
    register_backend(AttentionBackendEnum.CPU_ATTN, "posenc.vllm._backend.Backend")
    if rotation != "off":
        from ._rotary import register_rotary_embedding

        register_rotary_embedding(rotation)
