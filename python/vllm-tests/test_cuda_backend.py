# ===- test_cuda_backend.py - the plug-in for vLLM on CUDA -----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The backend in the place of FLASH_ATTN, without CUDA: its registration, and calls with
tensors of the CPU in the order of that backend."""

import os
import subprocess
import sys
import types

import pytest
import torch

HEADS, KEY_HEADS, DIM, BLOCK = 4, 2, 64, 16


def register(**environment):
    """Returns what the plug-in registers and logs where vLLM runs on CUDA."""
    program = """if True:
        import sys
        from vllm import platforms
        cpu = platforms.current_platform
        class Cuda(type(cpu)):
            device_type = "cuda"
            def is_cuda(self): return True
            def is_cpu(self): return False
        platforms._current_platform = Cuda()
        import posenc.vllm
        posenc.vllm.register()
        # vLLM's wheel for CPUs has no FlashAttention, which it would import on CUDA.
        platforms._current_platform = cpu
        from vllm.v1.attention.backends.registry import AttentionBackendEnum as e
        print(e.FLASH_ATTN.get_path(), e.CPU_ATTN.get_path())
        print(e.FLASH_ATTN.get_class().get_impl_cls().__name__)"""
    result = subprocess.run([sys.executable, "-c", program], text=True, check=True,
                            capture_output=True, env={**os.environ, **environment})
    return result.stdout.splitlines()[-2:], result.stdout + result.stderr


def test_registration():
    (paths, name), log = register(POSENC_VLLM="cuda")
    assert paths == ("posenc.vllm._cuda_backend.CudaBackend "
                     "vllm.v1.attention.backends.cpu_attn.CPUAttentionBackend")
    assert name == "CudaBackendImpl"
    (paths, name), log = register(VLLM_LOGGING_LEVEL="INFO")
    assert "posenc" not in paths and name == "FlashAttentionImpl"
    assert ("Posenc's plug-in is not active: its kernels for CUDA have run in an "
            "interpreter only. POSENC_VLLM=cuda activates it.") in log


@pytest.fixture
def make_layer(monkeypatch):
    """Returns a function that makes a layer's implementation and vLLM's layer."""
    from posenc.vllm import _cuda_backend, _layer

    def make(kv_cache_dtype="auto", decode_ranks=1, **options):
        config = types.SimpleNamespace(
            model_config=types.SimpleNamespace(dtype=torch.bfloat16),
            parallel_config=types.SimpleNamespace(
                decode_context_parallel_size=decode_ranks))
        monkeypatch.setattr(_layer, "get_current_vllm_config", lambda: config)
        # vLLM's class asks for FlashAttention, which is not installed.
        monkeypatch.setattr(_cuda_backend.FlashAttentionImpl, "__init__", initialize)
        impl = _cuda_backend.CudaBackendImpl(
            HEADS, DIM, 0.125, KEY_HEADS, None, None, kv_cache_dtype, **options)
        layer = types.SimpleNamespace(_k_scale=torch.tensor(0.02),
                                      _v_scale=torch.tensor(0.02))
        return impl, layer

    def initialize(self, num_heads, head_size, scale, num_kv_heads, alibi_slopes,
                   sliding_window, kv_cache_dtype, logits_soft_cap, attn_type,
                   kv_sharing_target_layer_name, sinks):
        self.head_size, self.scale, self.sinks = head_size, scale, sinks
        self.alibi_slopes, self.logits_soft_cap = alibi_slopes, logits_soft_cap or 0

    return make


def make_batch(causal=True):
    from vllm.v1.attention.backends.flash_attn import FlashAttentionMetadata

    new, lengths = [40, 5, 1], [40, 33, 70]
    starts = torch.tensor([0, *new]).cumsum(0).to(torch.int32)
    table = torch.randperm(16)[:15].view(3, 5).to(torch.int32)
    metadata = FlashAttentionMetadata(
        num_actual_tokens=sum(new), max_query_len=max(new), query_start_loc=starts,
        max_seq_len=max(lengths), seq_lens=torch.tensor(lengths, dtype=torch.int32),
        block_table=table, slot_mapping=None, causal=causal)
    return new, lengths, table, metadata


@pytest.mark.parametrize("order", ["NHD", "HND"])
@pytest.mark.parametrize("kv_cache_dtype", ["auto", "fp8"])
def test_attention_of_a_batch(make_layer, order, kv_cache_dtype):
    torch.manual_seed(0)
    impl, layer = make_layer(kv_cache_dtype)
    new, lengths, table, metadata = make_batch()
    storage = torch.uint8 if kv_cache_dtype == "fp8" else torch.bfloat16
    sizes = ((16, BLOCK, KEY_HEADS, 2 * DIM) if order == "NHD" else
             (16, KEY_HEADS, BLOCK, 2 * DIM))
    cache = torch.zeros(sizes, dtype=storage)
    if order == "NHD":
        cache = cache.transpose(1, 2)
    expected = torch.empty(sum(new), HEADS, DIM)
    q = torch.randn(sum(new), HEADS, DIM).to(torch.bfloat16)
    for row, (count, length) in enumerate(zip(new, lengths)):
        k, v = torch.randn(2, length, KEY_HEADS, DIM).to(torch.bfloat16)
        at = torch.arange(length)
        slots = table[row, at // BLOCK].long() * BLOCK + at % BLOCK
        impl.do_kv_cache_update(layer, k, v, cache, slots)
        first = int(metadata.query_start_loc[row])
        expected[first:first + count] = torch.nn.functional.scaled_dot_product_attention(
            q[first:first + count].float().transpose(0, 1),
            *(x.float().transpose(0, 1).repeat_interleave(2, 0) for x in (k, v)),
            attn_mask=torch.ones(count, length).tril(length - count).bool(),
            scale=0.125).transpose(0, 1)
    out = torch.zeros(sum(new) + 3, HEADS, DIM, dtype=torch.bfloat16)
    # Rows after the tokens of the batch are padding.
    padded = torch.cat([q, q[:3] * torch.nan])
    assert impl.forward(layer, padded, padded, padded, cache, metadata, out) is out
    error = (out[:sum(new)].float() - expected).abs().max()
    assert error < (0.1 if kv_cache_dtype == "fp8" else 0.02)
    assert not out[sum(new):].any()


def test_encoder(make_layer):
    torch.manual_seed(0)
    impl, layer = make_layer(attn_type="encoder_only")
    new, _, _, metadata = make_batch(causal=False)
    q = torch.randn(sum(new), HEADS, DIM).to(torch.bfloat16)
    k, v = torch.randn(2, sum(new), KEY_HEADS, DIM).to(torch.bfloat16)
    out = torch.zeros_like(q)
    impl.do_kv_cache_update(layer, k, v, None, None)
    impl.forward(layer, q, k, v, None, metadata, out)
    first = slice(0, new[0])
    expected = torch.nn.functional.scaled_dot_product_attention(
        q[first].float().transpose(0, 1),
        *(x[first].float().transpose(0, 1).repeat_interleave(2, 0) for x in (k, v)),
        scale=0.125).transpose(0, 1)
    assert (out[first].float() - expected).abs().max() < 0.02


@pytest.mark.parametrize("change", ["causal", "mm_prefix_query_range_tensor",
                                    "rswa_prefix_lens"])
def test_batches_that_flash_attention_runs(make_layer, monkeypatch, change):
    from posenc.vllm import _cuda_backend

    impl, layer = make_layer()
    *_, metadata = make_batch()
    setattr(metadata, change, torch.ones(3, dtype=torch.int32))
    calls = []
    monkeypatch.setattr(_cuda_backend.FlashAttentionImpl, "forward",
                        lambda *arguments: calls.append(arguments))
    impl.forward(layer, None, None, None, None, metadata, None)
    assert len(calls) == 1


@pytest.mark.parametrize("options, reason", [
    ({"kv_cache_dtype": "nvfp4"}, "quantized caches ('nvfp4') are not supported"),
    ({"kv_cache_dtype": "ultraquant_4bit"},
     "there are no kernels: caches of elements 'torch.uint8' are not supported"),
    ({"decode_ranks": 2}, "decode context parallelism is not supported")])
def test_layers_that_keep_flash_attention(make_layer, monkeypatch, options, reason):
    from posenc.vllm import _cuda_backend

    calls = []
    impl, layer = make_layer(**options)
    assert impl.obstacle.startswith(reason)
    for name in ("forward", "do_kv_cache_update"):
        monkeypatch.setattr(_cuda_backend.FlashAttentionImpl, name,
                            lambda *arguments: calls.append(arguments))
    impl.forward(layer, None, None, None, None, None, None)
    impl.do_kv_cache_update(layer, None, None, None, None)
    assert len(calls) == 2
