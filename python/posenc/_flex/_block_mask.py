# ===- _block_mask.py - masks of attention ---------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Block masks: PyTorch's, whose blocks become a captured array, and lazy ones, which
have no blocks, since kernels find the tiles that a `mask_mod` hides."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _later
from .._errors import Error

# The size of a block that means "the whole sequence" in PyTorch.
WHOLE = 1 << 30
# Elements of a table.
EMPTY, PARTIAL, FULL = 0, 1, 2


def noop_mask(batch: Any, head: Any, query: Any, key: Any) -> Any:
    """A `mask_mod` that shows all keys. Returns true for each index of batch, head, query
    and key. There are no errors."""
    return key >= 0


def and_masks(*mask_mods: Callable) -> Callable:
    """Returns a `mask_mod` that shows a key if all of `mask_mods` do, or if there are none.
    Raises Error for what is no function."""
    _check_functions(mask_mods)

    def mask_mod(batch, head, query, key):
        result = noop_mask(batch, head, query, key)
        for function in mask_mods:
            result = result & function(batch, head, query, key)
        return result

    return mask_mod


def or_masks(*mask_mods: Callable) -> Callable:
    """Returns a `mask_mod` that shows a key if one of `mask_mods` does. Raises Error for what
    is no function."""
    _check_functions(mask_mods)

    def mask_mod(batch, head, query, key):
        result = key < 0
        for function in mask_mods:
            result = result | function(batch, head, query, key)
        return result

    return mask_mod


def _check_functions(mask_mods: tuple) -> None:
    for function in mask_mods:
        if not callable(function):
            raise Error(f"expected functions as masks, got a {type(function).__name__}")


class BlockMask:
    """A mask that `create_block_mask` returns: a `mask_mod` and the sizes that it is for.

    Where PyTorch is loaded, it is one of PyTorch's block masks, too. Its blocks, such as
    `kv_indices`, are those that PyTorch makes of the same arguments when it is first asked
    for them.
    """

    __module__ = "posenc"

    def __init__(self, mask_mod: Callable, arguments: dict[str, Any]):
        self.mask_mod = mask_mod
        self._arguments = arguments
        self.seq_lengths = arguments["Q_LEN"], arguments["KV_LEN"]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, heads, queries and keys; 1 where all have the same mask."""
        of = self._arguments
        return of["B"] or 1, of["H"] or 1, of["Q_LEN"], of["KV_LEN"]

    def to(self, device) -> BlockMask:
        """Returns the mask for another device. The arrays that `mask_mod` captures stay
        where they are."""
        return type(self)(self.mask_mod, {**self._arguments, "device": device})

    def __reduce__(self):
        return _make, (self.mask_mod, self._arguments)

    def __repr__(self) -> str:
        return f"posenc.BlockMask(shape={self.shape})"


def create_block_mask(mask_mod: Callable, B: int | None, H: int | None, Q_LEN: int,
                      KV_LEN: int, device: Any = None, BLOCK_SIZE: Any = 128,
                      _compile: bool = False, **others: Any) -> BlockMask:
    """As `torch.nn.attention.flex_attention.create_block_mask`, at no cost: no block is
    computed, since `posenc.flex_attention` skips tiles that a mask hides by itself. Blocks
    are made when an attribute of them is used.

    mask_mod: a function of batch, head, query and key index that tells whether the key is
        visible
    B, H: the batch and the number of heads; None if all have the same mask
    Q_LEN, KV_LEN: the numbers of queries and of keys
    device, BLOCK_SIZE, others: those of PyTorch, for the blocks

    Returns the mask, an argument `block_mask` of `posenc.flex_attention`. Raises Error for
    a `mask_mod` that is no function, and for a length that is no number of tokens.
    """
    _check_functions((mask_mod,))
    for name, size in (("Q_LEN", Q_LEN), ("KV_LEN", KV_LEN)):
        if not isinstance(size, int) or size < 0:
            raise Error(f"{name} is {size!r}, expected a number of tokens")
    return _make(mask_mod, dict(
        B=B, H=H, Q_LEN=Q_LEN, KV_LEN=KV_LEN, device=device, BLOCK_SIZE=BLOCK_SIZE,
        _compile=_compile, **others))


def _make(mask_mod: Callable, arguments: dict[str, Any]) -> BlockMask:
    kind: type = BlockMask
    if "torch" in sys.modules:
        kind = _later.load_torch_block_mask().TorchBlockMask
    return kind(mask_mod, arguments)


class Blocks(NamedTuple):
    """What a block mask says of pairs, besides its `mask_mod`."""

    table: Any  # i8[batch or 1, heads or 1, query blocks, key blocks] of EMPTY, …
    query_size: int  # queries of a block
    key_size: int


# Tables by the ids of the tensors that they are made of, with these and their versions.
_tables: dict[tuple, tuple] = {}
_MAX_TABLES = 64


def find_blocks(mask) -> Blocks | None:
    """Returns the blocks of a block mask; None if it has none, or a single one."""
    if isinstance(mask, BlockMask):
        return None
    query_size, key_size = map(int, mask.BLOCK_SIZE)
    if query_size >= WHOLE and key_size >= WHOLE:
        return None
    columns = -(-mask.seq_lengths[1] // key_size)
    return Blocks(_find_table(mask, columns), query_size, key_size)


def _find_table(mask, columns: int):
    tensors = (mask.kv_num_blocks, mask.kv_indices, mask.full_kv_num_blocks,
               mask.full_kv_indices)
    torch = sys.modules["torch"]
    if not all(tensor is None or (type(tensor) is torch.Tensor
                                  and not tensor.is_inference()) for tensor in tensors):
        # They are recorded, and have no values yet, or have no versions.
        return make_table(columns, *tensors)
    key = (columns, *(id(tensor) for tensor in tensors))
    versions = tuple(0 if tensor is None else tensor._version for tensor in tensors)
    found = _tables.get(key)
    if found is not None and found[1] == versions and all(
            reference() is tensor for reference, tensor in zip(found[0], tensors)
            if tensor is not None):
        return found[2]
    while len(_tables) >= _MAX_TABLES:
        _tables.pop(next(iter(_tables)), None)
    table = make_table(columns, *tensors)
    references = tuple(None if tensor is None else weakref.ref(tensor)
                       for tensor in tensors)
    _tables[key] = references, versions, table
    return table


def make_table(columns: int, count, indices, full_count, full_indices):
    """Returns i8[batch, heads, query blocks, key blocks] of lists of blocks. `columns` is
    the number of blocks of keys."""
    torch = sys.modules["torch"]
    table = _mark(torch, columns, count, indices) * PARTIAL
    if full_count is not None:
        table = torch.maximum(
            table, _mark(torch, columns, full_count, full_indices) * FULL)
    return table


def _mark(torch, columns: int, count, indices):
    """Returns 1 where a block is among the first `count` of `indices`, else 0."""
    listed = torch.arange(indices.shape[-1], device=indices.device) < count[..., None]
    # Others go to a column that is dropped.
    at = torch.where(listed, indices.to(torch.int64), columns)
    marks = torch.zeros((*indices.shape[:-1], columns + 1), dtype=torch.int8,
                        device=indices.device)
    return marks.scatter(-1, at, 1)[..., :columns].contiguous()
