# ===- dtensors.py - calls with DTensors -------------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Calls with DTensors that are divided among the processes of gloo, compared with those
of whole tensors. test_dtensors.py starts the processes."""

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

import posenc
import posenc.torch

BATCH, TOKENS, HEADS, KEY_HEADS, DIM = 4, 8, 8, 4, 16
CONFIG = {
    "model_type": "llama", "num_attention_heads": HEADS, "num_key_value_heads": KEY_HEADS,
    "head_dim": DIM, "hidden_size": HEADS * DIM, "rope_theta": 10000.0,
    "max_position_embeddings": 4096}
SINUSOIDAL = """
func.func @table(%positions: tensor<?xi64> {posenc.sizes = ["tokens"]})
    -> tensor<?x16xf32> {
  %c0 = arith.constant 0 : index
  %tokens = tensor.dim %positions, %c0 : tensor<?xi64>
  %empty = tensor.empty(%tokens) : tensor<?x16xf32>
  %table = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 16>
    positions(%positions : tensor<?xi64>) outs(%empty : tensor<?x16xf32>)
  return %table : tensor<?x16xf32>
}
"""


class Comparison:
    """Calls of functions with tensors that a mesh divides."""

    def __init__(self, mesh):
        self.mesh = mesh

    def place(self, tensor, dim):
        """Returns a tensor that the mesh divides by a dimension; None: that is whole."""
        placement = Replicate() if dim is None else Shard(dim)
        return distribute_tensor(tensor, self.mesh, [placement] * self.mesh.ndim)

    def check(self, function, tensors, dims, result_dim):
        """Compares the bits of results, and how they are divided."""
        expected = function(*tensors)
        actual = function(*map(self.place, tensors, dims))
        for one, other in zip(*((some if isinstance(some, tuple) else (some,))
                                for some in (actual, expected))):
            wanted = Replicate() if result_dim is None else Shard(result_dim)
            assert one.placements == (wanted,), (one.placements, wanted)
            assert torch.equal(one.full_tensor(), other)

    def check_gradients(self, function, tensors, dims, bound):
        leaves = [one.clone().requires_grad_() for one in tensors]
        result = function(*leaves)
        factors = torch.randn(result.shape, generator=torch.Generator().manual_seed(1))
        expected = torch.autograd.grad((result * factors).sum(), leaves,
                                       materialize_grads=True)
        placed = [self.place(one, dim).requires_grad_()
                  for one, dim in zip(tensors, dims)]
        result = function(*placed)
        loss = (result * distribute_tensor(factors, self.mesh, result.placements)).sum()
        for one, other in zip(torch.autograd.grad(loss, placed), expected):
            difference = (one.full_tensor() - other).norm()
            assert difference <= bound * other.norm(), difference


def make(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def compare_operators(comparison):
    check, q = comparison.check, make(BATCH, TOKENS, HEADS, DIM)
    k, v = (make(BATCH, TOKENS, KEY_HEADS, DIM, seed=seed) for seed in (1, 2))
    positions = torch.arange(TOKENS).repeat(BATCH, 1) + 3
    cache, lengths = k.transpose(1, 2).contiguous(), torch.arange(BATCH) + 3
    kernels = posenc.compile(CONFIG, dtype="f32", opt_level=0)
    operators = posenc.torch.operators(kernels)
    check(operators.rope, (q, k, positions), (2, 2, None), 2)
    check(operators.rope, (q, k, positions), (1, 1, None), 1)
    check(operators.rope, (q, k, positions), (3, 3, None), None)
    check(operators.attention, (q, k, v, positions), (2, 2, 2, None), 2)
    check(operators.attention, (q, k, v, positions), (0, 0, None, 0), 0)
    check(operators.attention, (q, k, v, positions), (1, 1, 1, 1), None)
    check(kernels.attention, (q, k, v, positions), (2, 2, 2, None), 2)
    few = q[:, :1].contiguous()
    check(operators.decode, (few, cache, cache, lengths), (2, 1, 1, None), 2)
    check(operators.decode, (few, cache, cache, lengths), (0, 0, 0, 0), 0)
    check(operators.sincos, (positions[0].contiguous(),), (0,), 0)
    functional = posenc.functional
    check(lambda q, k, v: functional.attention(q, k, v, causal=True, return_lse=True),
          (q, k, v), (2, 2, 2), 2)
    check(lambda q, cache, lengths: functional.decode(q, cache, cache, lengths),
          (few, cache, lengths), (2, 1, None), 2)
    check(lambda k, cache, lengths: functional.append(k, k, cache, cache, lengths),
          (k[:, :1].contiguous(), cache, lengths), (2, 1, None), 1)
    module = posenc.compile(SINUSOIDAL)
    check(posenc.torch.operators(module).table, (positions[0].contiguous(),), (0,), None)
    posenc.divide(module, "tokens")
    check(posenc.torch.operators(module).table, (positions[0].contiguous(),), (0,), 0)
    where = comparison.place(positions, None)
    comparison.check_gradients(
        lambda q, k: operators.rope(
            q, k, where if isinstance(q, DTensor) else positions)[0], (q, k), (2, 2), 0)


def compare_flex(comparison):
    q = make(BATCH, HEADS, TOKENS, DIM)
    k, v = (make(BATCH, KEY_HEADS, TOKENS, DIM, seed=seed) for seed in (1, 2))
    bias = make(HEADS, TOKENS, seed=3)

    def attend(q, k, v, bias):
        return posenc.flex_attention(
            q, k, v, lambda s, b, h, i, j: s + bias[h, j], enable_gqa=True,
            mask_mod=lambda b, h, i, j: i >= j)

    check = comparison.check
    check(attend, (q, k, v, bias), (1, 1, 1, 0), 1)
    check(attend, (q, k, v, bias), (0, 0, 0, None), 0)
    check(attend, (q, k, v, bias), (2, 2, 2, None), None)
    check(lambda q, k, v: attend(q, k, v, bias), (q, k, v), (1, 1, 1), 1)
    for dims in ((1, 1, 1, 0), (0, None, None, None)):
        comparison.check_gradients(attend, (q, k, v, bias), dims, 1e-6)


def check_errors(mesh):
    q = make(BATCH, TOKENS, HEADS, DIM)
    whole = DTensor.from_local(q, mesh, [Replicate()] * mesh.ndim)
    for arrays, match in (((whole, q, q), "k is a plain tensor, but another input"),
                          ((q, whole, q), "k is a DTensor, but other inputs are not")):
        try:
            posenc.functional.attention(*arrays)
        except posenc.Error as error:
            assert match in str(error), error
        else:
            raise AssertionError("expected an error")
    # A sum that is not added up yet is added before the call.
    part = DTensor.from_local(q / mesh.size(), mesh, [Partial()] * mesh.ndim)
    result = posenc.functional.attention(part, part, part)
    assert torch.equal(result.full_tensor(), posenc.functional.attention(q, q, q))


def compare_two_dimensions(size):
    """The batch is divided by one dimension of the mesh and heads by the other, or heads
    by both."""
    mesh = init_device_mesh("cpu", (size // 2, 2))
    tensors = (make(BATCH, TOKENS, HEADS, DIM), make(BATCH, TOKENS, KEY_HEADS, DIM, seed=1),
               make(BATCH, TOKENS, KEY_HEADS, DIM, seed=2))
    positions = torch.arange(TOKENS).repeat(BATCH, 1) + 3
    kernels = posenc.compile(CONFIG, dtype="f32", opt_level=0)
    expected = kernels.attention(*tensors, positions)
    for placements in ([Shard(0), Shard(2)], [Shard(2), Shard(2)]):
        result = kernels.attention(
            *(distribute_tensor(one, mesh, placements) for one in tensors),
            distribute_tensor(positions, mesh, [Replicate()] * 2))
        assert result.placements == tuple(placements)
        assert torch.equal(result.full_tensor(), expected)


def compare(rank, size):
    if size == 4:
        compare_two_dimensions(size)
        return
    mesh = init_device_mesh("cpu", (size,))
    comparison = Comparison(mesh)
    compare_operators(comparison)
    compare_flex(comparison)
    check_errors(mesh)
