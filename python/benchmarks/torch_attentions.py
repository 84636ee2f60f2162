# ===- torch_attentions.py - random rotations and attentions --------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Statements of torch_programs.py that spell rotations and attentions."""

import torch

from torch_programs import FLOATS, Skip, one, some, statement


@statement("rotation", weight=2)
def rotation(p):
    """A rotation of channels, or what looks like one."""
    floats = [t for t in FLOATS if t in p.types]
    fits = [v for v in p.values if v.rank == 4 and v.dtype in floats and v.shape[3] in (
        4, 6, 8, 16)]
    x = p.rng.choice(fits) if fits and p.rng.random() < .5 else p.add_input(
        p.rng.choice(floats), (p.rng.choice([1, 2]), *some(p, (2, 5), (5, 2), (1, 3), (3, 0)),
                               p.rng.choice([4, 8, 16])))
    dim, tokens = x.shape[3], p.rng.choice([1, 2])
    half = dim // 2
    n = p.size(x, tokens)
    table = f"torch.arange({n})[:, None] * 0.3 ** torch.arange({half})"
    if tokens == 1:
        table = f"({table})[:, None]"
    kind = some(p, "halves", "neighbours", "joined", "partial")
    sign, other = some(p, ("-", "+"), ("-", "+"), ("+", "-"), ("-", "-"))
    to = some(p, f".to({x.dtype})", "")
    if kind == "halves":
        lines = [f"a = {table}", f"c, s = a.cos(){to}, a.sin(){to}",
                 f"h1, h2 = {x.name}[..., :{half}], {x.name}[..., {half}:]"]
        text = f"torch.cat((h1 * c {sign} h2 * s, h2 * c {other} h1 * s), -1)"
    elif kind == "neighbours":
        lines = [f"a = {table}", f"c, s = a.cos(){to}, a.sin(){to}",
                 f"h1, h2 = {x.name}[..., ::2], {x.name}[..., 1::2]"]
        text = f"torch.stack((h1 * c {sign} h2 * s, h2 * c {other} h1 * s), -1)" + some(
            p, ".flatten(-2)", ".flatten(-2)", ".reshape(" + ", ".join(
                p.size(x, d) for d in range(4)) + ")")
    elif kind == "joined":
        join = some(p, "torch.cat((a, a), -1)", "torch.cat((a, a + 1), -1)",
                    "a.repeat_interleave(2, -1)")
        lines = [f"a = {table}", f"a = {join}", f"c, s = a.cos(){to}, a.sin(){to}",
                 f"h1, h2 = {x.name}.chunk(2, -1)",
                 f"r = torch.cat(({some(p, '-', '-', '')}h2, {some(p, '', '', '-')}h1), -1)"]
        text = some(p, f"{x.name} * c + r * s", f"r * s + c * {x.name}",
                    f"{x.name} * c - r * s", f"{x.name} * s + r * c")
    else:
        if dim < 8:
            raise Skip
        lines = [f"a = ({table})[..., :{dim // 4}]", "a = torch.cat((a, a), -1)",
                 f"c, s = a.cos(){to}, a.sin(){to}",
                 f"y, z = {x.name}[..., :{half}], {x.name}[..., {half}:]",
                 "h1, h2 = y.chunk(2, -1)",
                 "y = y * c + torch.cat((-h2, h1), -1) * s"]
        text = some(p, "torch.cat((y, z), -1)", "torch.cat((z, y), -1)", "y")
    return one(text, [x], lines=lines)


@statement("attention", weight=2)
def attention(p):
    """Attention, or what looks like one."""
    floats = [t for t in FLOATS if t in p.types]
    batch, heads = p.rng.choice([1, 2, 2, 3]), p.rng.choice([1, 2, 4])
    queries, keys = p.rng.choice([(5, 5), (3, 7), (1, 4), (4, 2), (7, 7), (0, 3)])
    groups = p.rng.choice([1, 1, heads])
    dim, width, dtype = p.rng.choice([4, 8]), p.rng.choice([4, 8]), p.rng.choice(floats)
    fits = [v for v in p.values if v.rank == 4 and v.dtype == dtype and
            v.shape[2:] == (queries, dim)]
    q = p.rng.choice(fits) if fits else p.add_input(dtype, (batch, heads, queries, dim))
    k = p.add_input(dtype, (batch, heads // groups, keys, dim))
    v = p.add_input(dtype, (batch, heads // groups, keys, width))
    used, kn, vn = [q, k, v], k.name, v.name
    lines = []
    if groups > 1:
        repeat = some(p, "{0}.repeat_interleave({1}, 1)", "{0}.repeat(1, {1}, 1, 1)",
                      "{0}[:, :, None].expand(-1, -1, {1}, -1, -1).flatten(1, 2)")
        lines += [f"k = {repeat.format(kn, groups)}", f"v = {repeat.format(vn, groups)}"]
        kn, vn = "k", "v"
    mask = p.rng.choice(["", "", "causal", "bool", "float", "window"])
    # Kernels do not read hidden values, which PyTorch multiplies by 0.
    if not torch.isfinite(torch.cat([x.tensor.flatten() for x in used])).all():
        raise Skip
    m = None
    if mask in ("bool", "float"):
        shape = some(p, (queries, keys), (batch, 1, queries, keys),
                     (batch, heads, queries, keys), (1, 1, 1, keys), (batch, 1, 1, keys))
        m = p.add_input(torch.bool if mask == "bool" else dtype, shape)
        used.append(m)
    if p.rng.random() < .5:
        arguments = {"": "", "causal": ", is_causal=True", "window": ", scale=0.3"}.get(
            mask, f", attn_mask={m.name if m else ''}")
        text = f"F.scaled_dot_product_attention({q.name}, {kn}, {vn}{arguments})"
        return one(text, used, lines=lines)
    lines.append(f"s = {q.name} @ {kn}.transpose(-1, -2)")
    lines.append(some(p, f"s = s * {dim ** -0.5}", f"s = s / {dim ** 0.5}", "s = s * 1.0",
                      "s = s * -1.0", "s = torch.tanh(s / 5) * 5",
                      "s = torch.tanh(s / 5) * 4"))
    i = f"torch.arange({p.size(q, 2)})[:, None]"
    j = f"torch.arange({p.size(k, 2)})"
    if mask == "causal":
        lines.append(some(p, f"s = s.masked_fill({j} > {i}, float('-inf'))",
                          f"s = torch.where({j} <= {i}, s, float('-inf'))",
                          f"s = torch.where({j} <= {i}, s, -1e4)"))
    elif mask == "window":
        lines.append(f"s = torch.where(({j} <= {i}) & ({i} - {j} < 3), s, float('-inf'))")
    elif mask == "bool":
        lines.append(some(p, f"s = torch.where({m.name}, s, float('-inf'))",
                          f"s = s.masked_fill({m.name}, float('-inf'))"))
    elif mask == "float":
        lines.append(f"s = s {some(p, '+', '+', '-')} {m.name}")
    axis = some(p, -1, -1, -1, -1, 2, 1)
    softmax = some(p, "torch.softmax(s, {a})",
                   "torch.softmax(s, {a}, dtype=torch.float32).to({t})",
                   "torch.softmax(s.float(), {a}).to({t})", "torch.softmax(s, {a}) * 2")
    lines.append("w = " + softmax.format(a=axis, t=dtype))
    text = some(p, f"w @ {vn}", f"w @ {vn}", f"(w @ {vn}).transpose(1, 2)",
                f"(w @ {vn}) + w.sum()", f"(w @ {vn}).transpose(1, 2).flatten(2)")
    return one(text, used, lines=lines)
