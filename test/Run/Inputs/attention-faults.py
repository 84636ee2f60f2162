#!/usr/bin/env python3
# ===- attention-faults.py - faults in the PTX of attention are found -------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""usage: attention-faults.py TABLE.md LIBRARY.so DECODE_LIBRARY.so PAGES_LIBRARY.so
    LATENT_LIBRARY.so FOLDER POSENC_RUN

Runs functions of attention-forms.mlir, decode-forms.mlir, paged-forms.mlir and
latent-forms.mlir, which the libraries contain, on the driver that executes PTX, without
and with each fault in their PTX. Prints what reports the fault: the driver or a wrong
result. Fails if a fault is not in the PTX, or is no row of the table in TABLE.md.
"""

import os
import pathlib
import re
import subprocess
import sys

import numpy

(TABLE, LIBRARY, DECODE_LIBRARY, PAGES_LIBRARY, LATENT_LIBRARY, FOLDER,
 RUN) = sys.argv[1:]
# The shapes of queries, and of keys and values: more than two tiles, so that stages
# are used again. The last one of heads_16 is that of results.
SHAPES = {"causal_bf16": ((1, 300, 4, 128), (1, 300, 2, 128)),
          "holes": ((1, 20, 1, 64), (1, 1030, 1, 64)),
          "group_1": ((1, 1, 2, 128), (1, 400, 2, 128)),
          "alibi": ((60, 4, 64), (9, 24, 2, 64)),
          "heads_16": ((1, 1, 16, 576), (1, 1, 400, 576), (1, 1, 16, 512))}
# The other arguments: the table of pages, of which all elements are used, the starts of
# sequences and the numbers of keys.
OTHERS = {"group_1": {"n": numpy.array([390])},
          "alibi": {"t": numpy.array([[5, 2, 7, 0, 3, 8, 1]], numpy.int32),
                    "c": numpy.array([0, 60]), "n": numpy.array([150])},
          "heads_16": {"n": numpy.array([390])}}
ARGUMENTS = {"group_1": "qkvn", "alibi": "qkvtcn", "heads_16": "qknv"}
LIBRARIES = {"group_1": DECODE_LIBRARY, "alibi": PAGES_LIBRARY,
             "heads_16": LATENT_LIBRARY}
# Of the relative error of bf16 on GPUs.
LIMIT = 4e-3
# The architecture, a name, the text of the instruction, what replaces it, and the
# function if it is not @causal_bf16.
FAULTS = [
    (80, "no wait for the copies", "cp.async.wait_group \t0;", ""),
    (80, "no barrier", "bar.sync \t0;", ""),
    (80, "values not transposed", "x4.trans.shared", "x4.shared"),
    (80, "keys transposed", "m8n8.x4.shared.b16", "m8n8.x4.trans.shared.b16"),
    (80, "minima of scores in place of maxima", "max.f32", "min.f32"),
    (90, "no wait for products", "wgmma.wait_group.sync.aligned 0;", ""),
    (90, "no wait for scores", "wgmma.wait_group.sync.aligned 1;", ""),
    (90, "no fence before products", "wgmma.fence.sync.aligned;", ""),
    (90, "no fence of mbarriers", "fence.mbarrier_init.release.cluster;", ""),
    (90, "no fence of queries", "fence.proxy.async.shared::cta;", ""),
    (90, "no masked pairs in headers", ", 3, 0, %p", ", 0, 0, %p", "holes"),
]
# Faults at one place of the kernel of warpgroups: the name, whether it is in the code
# of the producer, a pattern, of which the first match counts, and what replaces it.
WAIT = r"\{ \.reg \.pred P1; LAB_WAIT:[^}]*\}"
ARRIVE = r"\{ \.reg \.pred P2;[^}]*mbarrier\.arrive[^}]*\}"
# Bits of a descriptor: rows of 128 bytes are swizzled, or rows of 64.
SWIZZLE_128, SWIZZLE_64 = 1 << 62, 2 << 62


def swizzle_64(match):
    return f"{match.group(1)}{int(match.group(2)) - SWIZZLE_128 + SWIZZLE_64};"


PLACES = [
    ("no wait for keys", False, WAIT, ""),
    ("no wait for values", False,
     WAIT + r"(?=((?!LAB_WAIT).)*wgmma\.wait_group\.sync\.aligned 1;)", ""),
    ("no wait until keys are read", True, WAIT, ""),
    # The loop that copies values follows the code of the consumers.
    ("no wait until values are read", False,
     WAIT + r"(?=((?!LAB_WAIT).)*mbarrier\.arrive\.expect_tx)", ""),
    ("keys are released early", False,
     rf"(wgmma\.wait_group\.sync\.aligned 0;)(((?!wgmma).)*{ARRIVE})", r"\2 \1"),
    ("values are released early", False,
     r"(?<=aligned 1;)(((?!wait_group).)*)(wgmma\.wait_group\.sync\.aligned 0;)"
     rf"(((?!wgmma).)*{ARRIVE})", r"\1\4 \3"),
    ("wrong phase of keys that are read", True,
     r"xor\.b32 (\s*%r\d+, %r\d+), 1;", r"mov.b32 \1;"),
    ("phase of a stage is lost between tiles of queries", False,
     r"(selp\.b32 \s*%r\d+), 3, 0,", r"\1, 0, 0,"),
    ("no barrier between tiles of queries", False, r"bar\.sync %r\d+, 128;", ";"),
    ("phase of a stage does not change", False,
     r"(selp\.b32 \s*(%r\d+), 1, 0, %p\d+;\s*)xor\.b32 (\s*%r\d+, %r\d+), \2;",
     r"\1mov.b32 \3;"),
    ("wrong column of a mask", False,
     r"(setp\.gt\.s32 \s*%p\d+, %r\d+), 8;", r"\1, 7;"),
    ("wrong row of a mask", False,
     r"(setp\.gt\.s32 \s*%p\d+), (%r\d+)(, 0;)(.*?setp\.gt\.s32 \s*%p\d+), "
     r"(%r\d+)\3", r"\1, \5\3\4, \5\3"),
    ("wrong swizzle of queries", False,
     r"(or\.b64 \s*%rd\d+, %rd\d+, )(46\d{17});", swizzle_64),
    ("results of a warp are not scaled", False,
     r"(?<=aligned 1;)(((?!vote).)*)vote\.sync\.any", r"\1vote.sync.all"),
]
# Faults of the kernel whose warps have rings, where the first match counts.
RING_PLACES = [
    ("no wait for a tile", WAIT, ""),
    # The copies in the loop over tiles are the last ones.
    ("no barrier of the warp before a copy",
     r"bar\.warp\.sync \s*-1;(?=((?!bar\.warp).)*expect_tx((?!expect_tx).)*$)", ""),
    ("no fence of the barriers of a ring", r"fence\.mbarrier_init[^;]*;", ""),
    ("phase of a stage of a ring does not change",
     r"(selp\.b32 \s*(%r\d+), 1, 0, %p\d+;\s*)xor\.b32 (\s*%r\d+, %r\d+), \2;",
     r"\1mov.b32 \3;"),
    ("too few bytes of a tile", r"(mov\.b32 \s*%r\d+), 16384;", r"\1, 8192;"),
    ("wrong swizzle of a tile", r"(xor\.b32 \s*%r\d+, %r\d+), 32;", r"\1, 64;"),
    ("wrong stage of a ring",
     r"selp\.b32 (\s*%r\d+), 0, (%r\d+), (%p\d+;)(?=\s*selp\.b32 \s*%r\d+, 1, 0,)",
     r"selp.b32 \1, \2, 0, \3"),
]
# Faults in the producer of a kernel whose tiles have several boxes, where the first match
# counts. The page is the last coordinate.
PAGE_PLACES = [
    ("wrong page of a box", r"shfl\.sync\.down\.b32 (\s*%r\d+, %r\d+), 1, 31, -1;(?=\s*@)",
     r"mov.b32 \1;"),
    ("a box is not copied", r"cp\.async\.bulk\.tensor[^;]*;", ""),
    ("too few bytes of boxes", r"(mov\.b32 \s*%r\d+), 16384;", r"\1, 8192;"),
    ("too many bytes of boxes", r"(mov\.b32 \s*%r\d+), 16384;", r"\1, 32768;"),
    ("wrong rows of a box", r"(add\.s32 \s*%r\d+, %r\d+), 1024;", r"\1, 2048;"),
    ("boxes without keys", r"selp\.b64 (\s*%rd\d+, %rd\d+), 0, %p\d+;", r"mov.b64 \1;"),
]
# Faults of consumers that divide the keys of a tile, and of the producer.
SHARED = r"(ld\.shared\.%s \s*[^,]*(?:, [^\[]*)?\[%%rd\d+\+)%d\]"
LATENT_PLACES = [
    ("no barrier of maxima", False,
     r"bar\.sync %r\d+, 256;(?=((?!bar\.sync).)*ld\.shared\.b32)", ";"),
    ("no barrier of weights", False,
     r"bar\.sync %r\d+, 256;(?=((?!bar\.sync).)*ld\.shared\.v4)", ";"),
    ("no barrier before sums", False,
     r"bar\.sync %r\d+, 256;(?=\s*// end inline asm\s*st\.shared\.b32)", ";"),
    ("weights of one part of the keys", False, SHARED % ("v4.b32", 225280),
     r"\g<1>221184]"),
    ("sums of one part of the keys", False, SHARED % ("b32", 225280), r"\g<1>221184]"),
    ("keys are released before their values are read", False,
     rf"(wgmma\.wait_group\.sync\.aligned 0;)(((?!wgmma).)*{ARRIVE})", r"\2 \1"),
    ("no wait until the values in keys are read", True, WAIT, ""),
    ("too few bytes of keys", True, r"(mov\.b32 \s*%r\d+), 73728;", r"\1, 36864;"),
]


def get_distance(result, right):
    """Returns the relative distance of two arrays of bf16."""
    result, right = ((values.astype(numpy.uint32) << 16).view(numpy.float32)
                     for values in (result, right))
    return numpy.linalg.norm(result - right) / numpy.linalg.norm(right)


def find_edit(text, name, in_producer, pattern, replacement):
    """Returns the edit of one place in the PTX of a library: in the producer of a kernel
    of warpgroups, in its consumers, or, if in_producer is None, in all of a kernel."""
    begin = text.index(f"{name}(")
    part = kernel = text[begin : text.index("\n}", begin)]
    if in_producer is not None:
        producer, consumer = kernel.split("setmaxnreg.inc", 1)
        part = producer if in_producer else consumer
        begin += 0 if in_producer else len(kernel) - len(consumer)
    match = re.search(pattern, part, re.DOTALL)
    if not match:
        return None
    first, last = begin + match.start(), begin + match.end()
    old = match.group()
    new = replacement(match) if callable(replacement) else match.expand(replacement)
    # Adds the lines before until there is one such place.
    while text.count(old) > 1:
        line = text.rindex("\n", 0, first)
        old, new, first = text[line:first] + old, text[line:first] + new, line
    assert text[first:last] == old
    return f"{old}=>{new}"


def list_faults():
    """Yields the architecture, the name, the edit and the function of each fault."""
    for arch, name, old, new, *others in FAULTS:
        yield arch, name, f"{old}=>{new}", others[0] if others else "causal_bf16"
    ring = [(name, None, *place) for name, *place in RING_PLACES]
    pages = [(name, True, *place) for name, *place in PAGE_PLACES]
    for library, kernel, function, places in [
            (LIBRARY, "causal_bf16_attention_sm_90a", "causal_bf16", PLACES),
            (DECODE_LIBRARY, "group_1_attention_decode_sm_90a_0", "group_1", ring),
            (PAGES_LIBRARY, "alibi_attention_sm_90a", "alibi", pages),
            (LATENT_LIBRARY, "heads_16_attention_sm_90a", "heads_16", LATENT_PLACES)]:
        text = pathlib.Path(library).read_bytes().decode("latin-1")
        for name, *place in places:
            edit = find_edit(text, kernel, *place)
            if not edit:
                sys.exit(f"the PTX has no place for the fault: {name}")
            yield 90, name, edit, function


def call(function, arch, edit):
    """Returns the result, or the error."""
    path = pathlib.Path(FOLDER, "result.npy")
    path.unlink(missing_ok=True)
    # A block computes several tiles of queries.
    environment = dict(os.environ, POSENC_FAKE_CUDA_SM=str(arch),
                       POSENC_FAKE_CUDA_MULTIPROCESSORS="3")
    if edit:
        environment["POSENC_FAKE_CUDA_EDIT"] = edit
    files = [f"--input=@{FOLDER}/{function}.{name}.npy"
             for name in ARGUMENTS.get(function, "qkv")]
    library = LIBRARIES.get(function, LIBRARY)
    done = subprocess.run(
        [RUN, library, f"--function={function}", "--device=cuda:0", *files,
         f"--output=@{path}"], capture_output=True, text=True, check=False,
        env=environment)
    if done.returncode:
        return done.stderr
    if edit and done.stderr:
        sys.exit(done.stderr)
    return numpy.load(path)


def main():
    pathlib.Path(FOLDER).mkdir(exist_ok=True)
    random = numpy.random.default_rng(1)
    for function, (query, *keys) in SHAPES.items():
        for name, shape in [("q", query), ("k", keys[0]), ("v", keys[-1])]:
            values = random.standard_normal(shape, numpy.float32)
            if name == "q":
                # Large scores, for which results are scaled when a maximum grows.
                factors = 1 + numpy.arange(shape[-3]) % 16
                values *= factors.reshape(-1, 1, 1)
            numpy.save(pathlib.Path(FOLDER, f"{function}.{name}.npy"),
                       (values.view(numpy.uint32) >> 16).astype(numpy.uint16))
    for function, others in OTHERS.items():
        for name, values in others.items():
            numpy.save(pathlib.Path(FOLDER, f"{function}.{name}.npy"), values)
    right = {}
    for function, arch in [("causal_bf16", 80), ("causal_bf16", 90), ("holes", 90),
                           ("group_1", 80), ("group_1", 90), ("alibi", 80),
                           ("alibi", 90), ("heads_16", 80), ("heads_16", 90)]:
        result = call(function, arch, "")
        if isinstance(result, str):
            sys.exit(f"sm_{arch}: {result}")
        right[function, arch] = result
    for function in ["causal_bf16", "group_1", "alibi", "heads_16"]:
        distance = get_distance(right[function, 90], right[function, 80])
        if not distance <= 2 * LIMIT:
            sys.exit(f"the results of the kernels of {function} differ by {distance}")
    table = pathlib.Path(TABLE).read_text(encoding="utf-8")
    number = missed = 0
    for arch, name, edit, function in list_faults():
        number += 1
        if f"| sm_{arch}: {name} |" not in table:
            sys.exit(f"{TABLE} has no row of sm_{arch}: {name}")
        result = call(function, arch, edit)
        if isinstance(result, str):
            found = result.strip().splitlines()[0]
        elif get_distance(result, right[function, arch]) <= LIMIT:
            found = "NOT FOUND"
            missed += 1
        else:
            found = "wrong result"
        print(f"sm_{arch}, {name}: {found}")
    print(f"{number} faults, {missed} missed")


main()
