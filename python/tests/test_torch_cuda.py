# ===- test_torch_cuda.py - tensors of PyTorch on a CUDA device ------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The first calls to make on hardware. Without a CUDA device, those that need none run
on the CPU, which checks the tests."""

import threading

import numpy as np
import pytest

import posenc
from conftest import CONFIG, attend, is_close, make_inputs, rotate

torch = pytest.importorskip("torch")
import posenc.torch  # noqa: E402

needs_device = pytest.mark.skipif(not torch.cuda.is_available(),
                                  reason="PyTorch has no CUDA device")
DEVICES = ["cpu", pytest.param("cuda", marks=needs_device)]
on_devices = pytest.mark.parametrize("device", DEVICES)
HOST = make_inputs()
ROTATED = [rotate(x, HOST[3]) for x in HOST[:2]]
# Products of f32 on tensor cores.
BOUND = {"cpu": 1e-5, "cuda": 2e-3}


def put(device, *arrays):
    return [torch.from_numpy(np.array(x)).to(device) for x in arrays]


def read(tensor):
    return tensor.detach().float().cpu().numpy()


@on_devices
def test_calls(kernels, device):
    q, k, v, positions = put(device, *HOST)
    q_out, k_out = kernels.rope(q, k, positions)
    assert q_out.device == q.device
    assert is_close(read(q_out), ROTATED[0]) and is_close(read(k_out), ROTATED[1])
    o = kernels.attention(q, k, v, positions)
    assert is_close(read(o), attend(*ROTATED, HOST[2]), BOUND[device])
    # Positions of 32 bits, results in place, and heads before tokens.
    kernels.rope(q, k, positions.int(), out=(q, k))
    assert is_close(read(q), ROTATED[0])
    o = posenc.functional.attention(q, k, v, causal=True)
    assert is_close(read(o), attend(*ROTATED, HOST[2]), BOUND[device])
    o = posenc.flex_attention(*(x.transpose(1, 2) for x in (q, k, v)), enable_gqa=True,
                              mask_mod=lambda b, h, i, j: i >= j)
    assert is_close(read(o.transpose(1, 2)), attend(*ROTATED, HOST[2]), BOUND[device])


@on_devices
@pytest.mark.parametrize("dim", [64, 128])
def test_bf16(device, dim):
    """The kernels of warpgroups on Hopper: full and partial tiles, and views."""
    config = {**CONFIG, "head_dim": dim, "hidden_size": 4 * dim}
    kernels = posenc.compile(config, kernels=["attention"], dtype="bf16")
    random = np.random.default_rng(0)
    for tokens in (1, 130, 256):
        q, k, v = (torch.from_numpy(random.standard_normal(
            (2, heads, tokens, dim)).astype(np.float32)).to(device, torch.bfloat16)
            for heads in (4, 2, 2))
        positions = torch.arange(tokens, device=device).repeat(2, 1)
        result = kernels.attention(*(x.transpose(1, 2) for x in (q, k, v)), positions)
        host = [read(x.transpose(1, 2)) for x in (q, k, v)]
        rotated = [rotate(x, positions.cpu().numpy()) for x in host[:2]]
        assert is_close(read(result), attend(*rotated, host[2]), 2e-2)


@on_devices
def test_derivatives_and_graphs(kernels, device):
    q, k, _, positions = put(device, *HOST)
    operators = posenc.torch.operators(kernels)
    q.requires_grad_()
    operators.rope(q, k, positions)[0].sum().backward()
    assert is_close(read(q.grad), rotate(np.ones_like(HOST[0]), HOST[3], sign=-1))
    call = torch.compile(lambda q, k, p: operators.rope(2 * q, k, p)[0] + 1,
                         backend="aot_eager")
    with torch.no_grad():
        assert is_close(read(call(q, k, positions)), 2 * ROTATED[0] + 1)


@on_devices
def test_thread_without_a_context(device):
    """A thread may make its first call of CUDA here."""
    kernels = posenc.compile(CONFIG, kernels="rope", opt_level=0)
    q, k, _, positions = put(device, *HOST)
    results = []
    thread = threading.Thread(
        target=lambda: results.append(kernels.rope(q, k, positions)[0]))
    thread.start()
    thread.join()
    assert is_close(read(results[0]), ROTATED[0])


@on_devices
def test_model(device):
    transformers = pytest.importorskip("transformers")
    import posenc.transformers

    config = transformers.LlamaConfig(
        hidden_size=128, intermediate_size=64, num_hidden_layers=2, vocab_size=50,
        num_attention_heads=4, num_key_value_heads=2)
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).eval().to(device)
    tokens = torch.randint(0, 50, (2, 9), device=device)
    mask = torch.ones_like(tokens)
    mask[0, :3] = 0
    options = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": 0,
               "attention_mask": mask}
    with torch.no_grad():
        expected = model(tokens, attention_mask=mask).logits[:, 3:]
        text = model.generate(tokens, **options)
        posenc.transformers.enable(model)
        assert posenc.transformers.warmup(model, padding=True) > 0
        logits = model(tokens, attention_mask=mask).logits[:, 3:]
        assert is_close(read(logits), read(expected), BOUND[device])
        assert torch.equal(model.generate(tokens, **options), text)


@needs_device
def test_streams(kernels):
    """A call is in the current stream, which waits for a long kernel before it."""
    q, k, v, positions = put("cuda", *HOST)
    expected = kernels.attention(q, k, v, positions)
    late = torch.zeros_like(q)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        late.copy_(q)
        result = kernels.attention(late, k, v, positions)
    stream.synchronize()
    assert torch.equal(result, expected)


@needs_device
def test_capture(kernels):
    q, k, v, positions = put("cuda", *HOST)
    expected = kernels.attention(2 * q, k, v, positions)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = kernels.attention(q, k, v, positions)
    q *= 2
    graph.replay()
    assert torch.equal(result, expected)


@needs_device
def test_errors(kernels):
    q, k, _, positions = put("cuda", *HOST)
    with pytest.raises(posenc.Error, match="rope: k is on the CPU, but q is on the CUDA "
                                           "device 0: move them to one device"):
        kernels.rope(q, k.cpu(), positions)
