# ===- test_ring.py - attention across processes --------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""`ring_attention` by processes of gloo, compared with attention of the whole sequence."""

import datetime
import os
import socket
import time

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402

from torch._dynamo.testing import CompileCounterWithBackend  # noqa: E402

import posenc  # noqa: E402
import posenc.torch  # noqa: E402
from flex_variants import attend_dense  # noqa: E402
from posenc._flex import _plan  # noqa: E402

TOKENS, HEADS, KEY_HEADS, DIM = 96, 4, 2, 16


def make(dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(2, heads, TOKENS, DIM, generator=generator).to(dtype)
            for heads in (HEADS, KEY_HEADS, KEY_HEADS)]


def measure(actual, expected):
    return ((actual.double() - expected).norm() / expected.norm()).item()


def window(b, h, i, j):
    return i - j < 30


def soften(score, b, h, i, j):
    return 5 * torch.tanh(score / 5) - (i - j) * 0.01


def divide(rank, size, order):
    """Returns the tokens of a process: shards that follow each other, of different
    lengths, or one part from each end of the sequence (zig-zag), or all tokens in one
    process."""
    if order in ("first", "last"):
        has_tokens = rank == (0 if order == "first" else size - 1)
        return torch.arange(TOKENS if has_tokens else 0)
    if order == "zigzag":
        parts = torch.arange(TOKENS).chunk(2 * size)
        return torch.cat([parts[rank], parts[2 * size - 1 - rank]])
    ends = [TOKENS * number // size + (7 if 0 < number < size else 0)
            for number in range(size + 1)]
    return torch.arange(ends[rank], ends[rank + 1])


def check(rank, size, order, dtype, bounds, functions):
    tokens = divide(rank, size, order)
    whole = make(dtype)
    inputs = [one[:, :, tokens].contiguous().requires_grad_() for one in whole]
    output, lse = posenc.torch.ring_attention(
        *inputs, positions=tokens if order == "zigzag" else None, enable_gqa=True,
        return_lse=True, **functions)
    generator = torch.Generator().manual_seed(1)
    factors = (torch.randn(2, HEADS, TOKENS, DIM, generator=generator),
               torch.randn(2, HEADS, TOKENS, generator=generator))
    gradients = torch.autograd.grad(
        (output, lse), inputs, [one[:, :, tokens].to(like.dtype)
                                for one, like in zip(factors, (output, lse))])
    wide = [one.double().requires_grad_() for one in whole]

    def mask_mod(b, h, i, j):
        seen = i >= j
        return seen & functions["mask_mod"](b, h, i, j) if functions else seen

    expected = attend_dense(*wide, functions.get("score_mod"), mask_mod)
    wanted = torch.autograd.grad(expected, wide, [one.double() for one in factors])
    if not len(tokens):
        return
    for one, other in zip((output, lse), expected):
        assert measure(one, other[:, :, tokens]) < bounds[0]
    if dtype == torch.bfloat16:
        # Results of a part of the keys are not rounded, only those of all keys.
        local = expected[0][:, :, tokens]
        assert measure(output, local) < 1.02 * measure(local.to(dtype), local)
    for one, other in zip(gradients, wanted):
        assert measure(one, other[:, :, tokens]) < bounds[1]


def work(rank, size, port, task):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    _plan.compile_options["opt_level"] = 0
    dist.init_process_group("gloo", rank=rank, world_size=size,
                            timeout=datetime.timedelta(seconds=60))
    task(rank, size)
    dist.barrier()
    dist.destroy_process_group()
    # All is checked. A thread of gloo may still run, and its destructor would abort.
    os._exit(0)


def compare(rank, size):
    both = {"score_mod": soften, "mask_mod": window}
    check(rank, size, "zigzag", torch.float32, (2e-6, 1e-5), both)
    if size == 2:  # These need no more processes.
        check(rank, size, "shards", torch.float32, (2e-6, 1e-5), {})
        check(rank, size, "zigzag", torch.bfloat16, (1e-2, 1.5e-2), both)
        check(rank, size, "first", torch.float32, (2e-6, 1e-5), {})
        check(rank, size, "last", torch.float32, (2e-6, 1e-5), both)
        check_group_of_one(rank)
        check_compiled(rank, size)
        check_unused(rank)
        check_no_tokens(rank)
        check_refusals(rank)
        share_context(rank, size)
        distribute(rank, size)


def check_compiled(rank, size):
    """Under torch.compile it is one operator, with the same bits, of each group."""
    alone = [dist.new_group([0]), dist.new_group([1])][rank]
    for order, group in (("shards", None), ("zigzag", None), ("shards", alone)):
        tokens = divide(rank, size, order)

        def attend(*inputs):
            return posenc.torch.ring_attention(
                *inputs, positions=tokens if order == "zigzag" else None, enable_gqa=True,
                group=group, return_lse=True)

        results, backend = [], CompileCounterWithBackend("aot_eager")
        for function in (attend, torch.compile(attend, fullgraph=True, backend=backend)):
            inputs = [one[:, :, tokens].contiguous().requires_grad_() for one in make()]
            output, lse = function(*(one * 2 for one in inputs))
            results.append((output, lse, *torch.autograd.grad(
                output.square().sum() + lse.sum(), inputs)))
        assert all(torch.equal(one, other) for one, other in zip(*results))
        [graph] = backend.graphs
        assert [str(node.target) for node in graph.graph.nodes
                if "posenc" in str(node.target)] == ["posenc.ring_attention.default"]
        torch._dynamo.reset()


def check_unused(rank):
    """A process whose graph does not use the output still sends and receives."""
    for is_used in (rank == 0, False):
        def attend(*inputs):
            output = posenc.torch.ring_attention(*inputs, enable_gqa=True)
            return output if is_used else inputs[0] * 2

        for has_gradients in (False, True):
            inputs = [one.requires_grad_(has_gradients) for one in make()]
            output = torch.compile(attend, fullgraph=True, backend="aot_eager")(*inputs)
            assert torch.isfinite(output).all()
            torch._dynamo.reset()
    targets = [getattr(torch.ops.posenc, name).default
               for name in ("ring_attention", "ring_attention_backward")]
    assert all(torch.fx.Graph().call_function(one).is_impure() for one in targets)


def check_group_of_one(rank):
    """It is attention of the tokens of one process, with gradients."""
    group = [dist.new_group([0]), dist.new_group([1])][rank]
    inputs = [one.requires_grad_() for one in make()]
    output = posenc.torch.ring_attention(*inputs, enable_gqa=True, group=group)
    wide = [one.detach().double().requires_grad_() for one in inputs]
    expected, _ = attend_dense(*wide, mask_mod=lambda b, h, i, j: i >= j)
    assert measure(output, expected) < 2e-6
    for one, other in zip(torch.autograd.grad(output.sum(), inputs),
                          torch.autograd.grad(expected.sum(), wide)):
        assert measure(one, other) < 1e-5


def check_no_tokens(rank):
    inputs = [one[:, :, :0].requires_grad_() for one in make()]
    output, lse = posenc.torch.ring_attention(*inputs, enable_gqa=True, return_lse=True)
    assert output.shape == inputs[0].shape and lse.shape == (2, HEADS, 0)
    assert torch.autograd.grad(output.sum(), inputs)[1].shape == inputs[1].shape


def check_refusals(rank):
    """All processes raise the same error, whose ring goes on."""
    def raise_it(score, b, h, i, j):
        raise KeyError("a bug")

    q, k, v = make()
    for change, expected in (
            ({"query": q[:, :2]}, "the number of heads of process 1 of 2 is 2, and that of "
                                  "process 0 is 4: only the number of tokens"),
            ({"query": q.half(), "key": k.half(), "value": v.half()},
             "the type of process 1 of 2 is float16, and that of process 0 is float32"),
            ({"value": v[..., :8]}, "the number of value channels of process 1 of 2 is 8"),
            ({"scale": 0.5}, "the scale of process 1 of 2 is 0.5"),
            ({"key": k.double()}, "process 1 of 2: key has elements of type f64"),
            ({"key": k[:, :, 1:]}, "process 1 of 2: key has the shape"),
            ({"query": None}, "process 1 of 2: expected query as a tensor"),
            ({"positions": torch.arange(3)}, "process 1 of 2: positions have the shape"),
            ({"positions": torch.ones(TOKENS)}, "expected positions as a tensor of int"),
            ({"score_mod": raise_it}, "score_mod: KeyError: 'a bug'")):
        given = {"query": q, "key": k, "value": v, **(change if rank else {})}
        with pytest.raises(posenc.Error) as error:
            posenc.torch.ring_attention(**given, enable_gqa=True)
        assert str(error.value).startswith("ring_attention: ") and (
            expected in str(error.value))
        messages = [None, None]
        dist.all_gather_object(messages, str(error.value))
        assert messages[0] == messages[1]

    def attend(*inputs):
        return posenc.torch.ring_attention(*inputs, enable_gqa=True)

    for wrong in ((q[0], k, v), (q, k, v[0]), (q[0, 0, 0, 0], k, v)):
        with pytest.raises(posenc.Error, match="process 1 of 2: expected (query|value) as"):
            torch.compile(attend, fullgraph=True, backend="aot_eager")(
                *(wrong if rank else (q, k, v)))
        torch._dynamo.reset()


def share_context(rank, size):
    """Within torch's context_parallel, which divides buffers in zig-zag order."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.experimental import context_parallel
    from torch.distributed.tensor.experimental._attention import context_parallel_unshard

    mesh = init_device_mesh("cpu", (size,))
    buffers = [*make(), torch.arange(TOKENS)]
    expected, _ = attend_dense(*(one.double() for one in buffers[:3]),
                               mask_mod=lambda b, h, i, j: i >= j)
    with context_parallel(mesh, buffers=buffers, buffer_seq_dims=[2, 2, 2, 0]):
        output = posenc.torch.ring_attention(
            *buffers[:3], positions=buffers[3], enable_gqa=True, group=mesh.get_group())
        whole, = context_parallel_unshard(mesh, [output], [2])
    assert measure(whole, expected) < 2e-6


def distribute(rank, size):
    """Rotations of DTensors that are divided by batch, tokens or heads."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (size,))
    q, k = (one.transpose(1, 2).contiguous() for one in make()[:2])
    positions = torch.arange(TOKENS).repeat(2, 1) + 3
    kernels = posenc.compile({
        "model_type": "llama", "num_attention_heads": HEADS,
        "num_key_value_heads": KEY_HEADS, "head_dim": DIM, "hidden_size": HEADS * DIM,
        "max_position_embeddings": 4096, "rope_theta": 10000.0}, dtype="f32")
    expected = posenc.torch.rope(q, k, positions)
    for function, dims in ((posenc.torch.rope, (0, 1, 2)),
                           (posenc.torch.operators(kernels).rope, (0, 1))):
        for dim in dims:
            inputs = [distribute_tensor(one, mesh, [Shard(dim)]) for one in (q, k)]
            inputs[0].requires_grad_()
            where = Replicate() if dim == 2 else Shard(dim)
            results = function(*inputs, distribute_tensor(positions, mesh, [where]))
            for one, other in zip(results, expected):
                assert one.placements == (Shard(dim),)
                assert torch.equal(one.full_tensor(), other)
            results[0].sum().backward()
            assert inputs[0].grad.full_tensor().abs().max() > 0


def find_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def find_context():
    """Returns how processes start: by a server that has imported PyTorch, which takes
    longer than what each of them computes."""
    context = torch.multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch.distributed.tensor", "posenc.torch", "pytest"])
    return context


def spawn(task, size):
    find_context()
    torch.multiprocessing.start_processes(work, (size, find_port(), task), size,
                                          start_method="forkserver")


@pytest.mark.parametrize("size", [2, 4])
def test_processes(size):
    spawn(compare, size)


def lose(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2,
                            timeout=datetime.timedelta(seconds=5))
    if rank:
        time.sleep(12)  # It never calls.
        os._exit(0)
    start = time.monotonic()
    try:
        posenc.torch.ring_attention(*make(), enable_gqa=True)
    except posenc.Error as error:
        assert "lost another one" in str(error)
        os._exit(0 if time.monotonic() - start < 10 else 3)
    os._exit(4)


def test_lost_process():
    context = find_context()
    port = find_port()
    processes = [context.Process(target=lose, args=(rank, port)) for rank in range(2)]
    for one in processes:
        one.start()
    for one in processes:
        one.join(60)
    assert [one.exitcode for one in processes] == [0, 0]


def test_errors():
    with pytest.raises(posenc.Error, match="init_process_group"):
        posenc.torch.ring_attention(*make())
