# ===- _platform.py - makes vLLM's platform choose the backend --------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The choice of the backend by vLLM's platform of CPUs.

The backend has a name of its own, which vLLM's messages show. The platform takes no other
backend than CPU_ATTN, so the function that chooses is replaced."""

from __future__ import annotations

from typing import Any

from vllm.logger import init_logger
from vllm.v1.attention.backends import registry
from vllm.v1.attention.backends.registry import AttentionBackendEnum

from .._errors import Error
from ._options import get_mode

NAME = "POSENC"
_PATH = "posenc.vllm._backend.Backend"
# For layers whose cache other programs read, which know it by the name CPU_ATTN.
_PATH_FOR_CONNECTORS = "posenc.vllm._backend.ConnectorBackend"

logger = init_logger("vllm.posenc")


def _refuse(reason: str) -> None:
    if get_mode() == "require":
        raise Error(f"POSENC_VLLM=require: {reason}")


def _find_backend() -> Any:
    """Returns the member of vLLM's enumeration, which is added by the first call."""
    if NAME not in AttentionBackendEnum.__members__:
        member: Any = AttentionBackendEnum.register(NAME, _PATH)
        # vLLM pickles its configuration for processes that have not loaded plug-ins yet.
        member.__reduce_ex__ = lambda protocol: (_find_backend, ())
    return AttentionBackendEnum[NAME]


def register_backend(platform: Any) -> None:
    """Makes a platform choose Posenc's backend for layers that are not of MLA, unless
    `--attention-backend CPU_ATTN` asks for vLLM's."""
    choose = platform.get_attn_backend_cls
    if getattr(choose, "is_posenc", False):
        return
    ours, theirs = _find_backend(), AttentionBackendEnum.CPU_ATTN

    def get_attn_backend_cls(selected_backend: Any, attn_selector_config: Any,
                             *arguments: Any, **keywords: Any) -> str:
        if attn_selector_config.use_mla:
            _refuse("Posenc has no kernels for MLA")
        selected = theirs if selected_backend == ours else selected_backend
        path = choose(selected, attn_selector_config, *arguments, **keywords)
        if path != theirs.get_path():
            return path
        if selected_backend == theirs:
            _refuse("the backend CPU_ATTN was asked for")
            return path
        if attn_selector_config.use_kv_connector:
            return _PATH_FOR_CONNECTORS
        logger.info_once("Using %s backend.", NAME)
        return ours.get_path()

    get_attn_backend_cls.is_posenc = True  # type: ignore[attr-defined]
    type(platform).get_attn_backend_cls = staticmethod(get_attn_backend_cls)


def replace_flash_attention() -> None:
    """Puts Posenc's backend for CUDA in the place of FLASH_ATTN, whose name it keeps."""
    registry.register_backend(AttentionBackendEnum.FLASH_ATTN,
                              "posenc.vllm._cuda_backend.CudaBackend")
