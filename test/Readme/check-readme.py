# ===- check-readme.py - runs the examples of the README -------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===-----------------------------------------------------------------------===#
#
# Runs the commands, the C program and the modules of the README and of
# docs/abi.md, and compiles every item of the support tables of the README and of
# docs/gpus.md. Arguments: README, source folder, empty working folder, C compiler,
# folder of the tools, and what to check: `program`, `rest`, `table`, a row of a table,
# or `llvm=FOLDER` for the commands with LLVM's tool there; by default, all but these.

import json
import os
import re
import subprocess
import sys

import gpu_forms

readme, source, work, cc, tools, *parts = sys.argv[1:]
os.environ["PATH"] = tools + os.pathsep + os.environ["PATH"]
page = open(readme, encoding="utf-8").read()
abi_page = open(os.path.join(source, "docs", "abi.md"), encoding="utf-8").read()
gpu_page = open(os.path.join(source, "docs", "gpus.md"), encoding="utf-8").read()


def blocks(language, text=page):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def run(command, **kwargs):
    done = subprocess.run(command, cwd=work, text=True, capture_output=True,
                          **kwargs)
    if done.returncode != 0:
        sys.exit(f"failed: {command}\n{done.stdout}{done.stderr}")
    return done.stdout


def write(name, text):
    with open(os.path.join(work, name), "w", encoding="utf-8") as file:
        file.write(text)


def compile_module(text, *flags):
    write("item.mlir", text)
    run(["posenc-compile", "item.mlir", "-o", "item.o", "--opt-level=0", *flags])


def run_commands(commands):
    commands = commands.replace("examples/", source + "/examples/")
    return run(["bash", "-euc", commands])


def find_commands(word):
    """Returns the one block of commands with the word."""
    (found,) = [block for block in blocks("sh") if word in block]
    return found


def check_commands():
    output = run_commands(find_commands("posenc-run "))
    errors = re.findall(r"result #\d: max error ([\d.]+) ulp", output)
    assert len(errors) >= 2 and all(float(e) <= 4 for e in errors), output


def check_c_program():
    (program,) = blocks("c")
    (expected,) = re.findall(r"^prints `(.*?)`", page, re.M)
    write("example.c", program)
    commands = find_commands("example.c")
    assert "\ncc " in commands, commands
    output = run_commands(commands.replace(
        "\ncc ", f"\n{cc} -std=c99 -Wall -Wextra -Werror "))
    assert output.strip() == expected, output


def check_mlir_opt(folder):
    """Runs the commands of the README's module, of which one is LLVM's."""
    (module,) = blocks("mlir")
    write("x.mlir", module)
    commands = find_commands("mlir-opt-22 ")
    library = os.path.join(os.path.dirname(tools), "lib", "libPosenc.so")
    assert "build/lib/libPosenc.so" in commands, commands
    output = run_commands(commands.replace("mlir-opt-22", os.path.join(folder, "mlir-opt"))
                          .replace("build/lib/libPosenc.so", library))
    assert output.count("func.func @attention") == 2 and "posenc." not in output, output


def rope(pairing="half", dtype="f32", position="i64", scaling="", axes="",
         scale="", op="rope"):
    x, t = f"tensor<?x2x16x{dtype}>", f"tensor<?x8x{dtype}>"
    table = "f64" if dtype == "f64" else "f32"
    p = f"tensor<{'3x' if axes else ''}?x{position}>"
    frequencies = f"#posenc.frequencies<dim = 16{scaling}>"
    tables = t.replace(dtype, table)
    if op == "sincos":
        return (f"func.func @f(%p: {p}, %t: {t}) -> ({t}, {t}) {{\n"
                f"  %c, %s = posenc.sincos {frequencies} positions(%p : {p}) "
                f"outs(%t, %t : {t}, {t})\n  return %c, %s : {t}, {t}\n}}\n")
    if op == "rotate":
        return (f"func.func @f(%x: {x}, %c: {tables}, %s: {tables}) -> {x} {{\n"
                f"  %r = posenc.rotate {pairing} ins(%x : {x}) tables(%c, %s : "
                f"{tables}) dims = [0] outs(%x : {x})\n  return %r : {x}\n}}\n")
    return (f"func.func @f(%x: {x}, %p: {p}) -> {x} {{\n"
            f"  %r = posenc.rope {pairing} {frequencies} {axes} {scale} ins(%x : {x}) "
            f"positions(%p : {p}) dims = [0] outs(%x : {x})\n"
            f"  return %r : {x}\n}}\n")


def sinusoidal(order="interleaved", form=""):
    t = f"tensor<?x{17 if form == 'zero_pad' else 16}xf32>"
    p = f"tensor<{'2x' if form.startswith('axes') else ''}?xi64>"
    return (f"func.func @f(%p: {p}, %t: {t}) -> {t} {{\n"
            f"  %r = posenc.sinusoidal {order} #posenc.frequencies<dim = 16> "
            f"{form} positions(%p : {p}) outs(%t : {t})\n"
            f"  return %r : {t}\n}}\n")


def attention(score=""):
    q, k = "tensor<?x?x4x16xf32>", "tensor<?x?x2x16xf32>"
    region = f" score(%s, %b, %h, %i, %j) {{ {score} }}" if score else ""
    return (f"func.func @f(%q: {q}, %k: {k}, %o: {q}) -> {q} {{\n"
            f"  %r = posenc.attention causal ins(%q, %k, %k : {q}, {k}, {k}) "
            f"outs(%o : {q}){region}\n  return %r : {q}\n}}\n")


def turns():
    x, p, f = "tensor<?x2x16xf32>", "tensor<?xi64>", "tensor<8xf32>"
    h = "tensor<8xi64>"
    return (f"func.func @f(%x: {x}, %p: {p}, %f: {f}) -> {x} {{\n"
            f"  %h, %l = posenc.turns values(%f : {f})\n"
            f"  %r = posenc.rope half #posenc.frequencies<dim = 16> ins(%x : {x}) "
            f"positions(%p : {p}) turns(%h, %l : {h}, {h}) dims = [0] "
            f"outs(%x : {x})\n  return %r : {x}\n}}\n")


def convert_pairing():
    x = "tensor<?x2x16xf32>"
    return (f"func.func @f(%x: {x}) -> {x} {{\n"
            f"  %r = posenc.convert_pairing half to interleaved dim = 16 %x : {x}\n"
            f"  return %r : {x}\n}}\n")


OPERATIONS = {
    "convert_pairing": convert_pairing,
    "turns": turns,
    "sinusoidal": sinusoidal,
    "attention": attention,
    "kv_append": gpu_forms.kv_append,
    "alibi": lambda: attention(
        "%a = posenc.alibi(%h, %i, %j) heads = 4 : f32\n"
        "%y = arith.addf %s, %a : f32\nposenc.yield %y : f32"),
    "t5_bucket": lambda: attention(
        "%d = arith.subi %j, %i : index\n"
        "%n = posenc.t5_bucket %d : index\n"
        "%m = arith.index_cast %n : index to i32\n"
        "%f = arith.sitofp %m : i32 to f32\n"
        "%y = arith.addf %s, %f : f32\nposenc.yield %y : f32"),
}


SCALINGS = {
    "linear": "<factor = 2>",
    "llama3": "<factor = 8, low_freq_factor = 1, high_freq_factor = 4, "
              "original_max_position = 8192>",
    "yarn": "<factor = 4, original_max_position = 4096>",
    "geometric": "<shift = 1>",
    "explicit": "<values = [1, 0.5, 0.25, 0.125, 0.1, 0.01, 0.001, 0]>",
    "ntk": "<factor = 4>",
    "dynamic": "<factor = 2, max_position = 4096, length = 16384>",
    "longrope": "<short_factors = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], "
                "long_factors = [1.0, 1.1, 1.2, 1.3, 2.0, 4.0, 8.0, 16.0], "
                "original_max_position = 4096, length = 8192>",
    "proportional": "<rotated_pairs = 2>",
    "divisors": "<values = [1.0, 1.1, 1.2, 1.3, 2.0, 4.0, 8.0, 16.0]>",
}


FORMS = {
    "axes": "axes <axial, [4, 4]>",
    "zero_pad": "zero_pad",
    "padding_position": "padding_position = 1",
}


compiled_models = set()


def check_model(name):
    config = {"model_type": name, "hidden_size": 256, "num_attention_heads": 4,
              "max_position_embeddings": 2048}
    if name == "gptj":
        config = {"model_type": name, "n_embd": 256, "n_head": 4,
                  "rotary_dim": 32, "n_positions": 2048}
    elif name == "mpt":
        config = {"model_type": name, "d_model": 256, "n_heads": 4}
    elif name in ("qwen2_vl", "qwen2_5_vl", "glm4v"):
        config["rope_scaling"] = {"type": "default", "mrope_section": [8, 12, 12]}
    write("item.json", json.dumps(config))
    # Model types with the same functions have the same code.
    module = run(["posenc-compile", "item.json", "-o", "-", "--emit=posenc"])
    if module not in compiled_models:
        compiled_models.add(module)
        run(["posenc-compile", "item.json", "-o", "item.o", "--opt-level=0"])


def gpu_command(text, target):
    kind = "item.spv" if target == "vulkan" else "item.ptx"
    write("item.mlir", text)
    return ["posenc-compile", "item.mlir", f"--target={target}", "-o", kind,
            "--opt-level=0"]


def check_gpu_target(target):
    run(gpu_command(rope(), target))
    run(gpu_command(gpu_forms.attention("causal"), target))


def check_no_kernel(text, target, reason):
    """Checks that the only function of a module has no kernel, and why."""
    done = subprocess.run(gpu_command(text, target), cwd=work, text=True,
                          capture_output=True)
    assert done.returncode == 1, f"{target}: compiled"
    assert reason in done.stderr, done.stderr


def check_target_without_attention(target):
    run(gpu_command(rope(), target))
    check_no_kernel(gpu_forms.attention("causal"), target, "'posenc.attention'")


def check_gpu_attention(form):
    # The PTX of sm_90a has all kernels: those of warpgroups, and those of sm_80.
    run(gpu_command(gpu_forms.SUPPORTED[form], "cuda:sm_90a"))


def check_nvidia(form):
    run(gpu_command(gpu_forms.ROWS[form], "cuda:sm_80"))


def check_unsupported(form):
    text, reason = gpu_forms.UNSUPPORTED[form]
    check_no_kernel(text, "cuda:sm_90a", reason)


ROWS = {
    "operations": lambda e: compile_module(
        OPERATIONS[e]() if e in OPERATIONS else rope(op=e)),
    "frequency scalings": lambda e: compile_module(
        rope(scaling=f", scaling = #posenc.{e}{SCALINGS[e]}")),
    "position scales": lambda e: compile_module(
        rope(scale=f"scale #posenc.{e}<base = 512, gamma = 0.4>")),
    "pairings": lambda e: compile_module(rope(pairing=e)),
    "axis layouts": lambda e: compile_module(
        rope(axes=f"axes #posenc.axes<{e}, [2, 3, 3]>")),
    "sinusoidal orders": lambda e: compile_module(sinusoidal(e)),
    "sinusoidal forms": lambda e: compile_module(
        sinusoidal("sin_cos", FORMS[e])),
    "element types": lambda e: compile_module(rope(dtype=e)),
    "position types": lambda e: compile_module(rope(position=e)),
    "precisions": lambda e: compile_module(rope(scaling=f", precision = {e}")),
    "targets": lambda e: compile_module(rope(), f"--target={e}"),
    "GPU targets": check_gpu_target,
    "GPU targets without attention": check_target_without_attention,
    "attention on GPUs": check_gpu_attention,
    "on NVIDIA GPUs": check_nvidia,
    "not on GPUs": check_unsupported,
    "model types": check_model,
}


def read_language():
    """Returns what the dialect defines, or what this test compiles for GPUs, for the
    rows that must name all of it."""
    folder = os.path.join(source, "dialect", "posenc", "IR")
    text = "".join(open(os.path.join(folder, name), encoding="utf-8").read()
                   for name in sorted(os.listdir(folder)) if name.endswith(".td"))

    def find(pattern, part=text):
        return set(re.findall(pattern, part, re.S))

    def read_enum(name):
        (cases,) = re.findall(rf"def Posenc_{name} : Posenc_Enum<(.*?)\]>;", text, re.S)
        return find(r'I32EnumCase<"\w+", \d+, "(\w+)">', cases)

    def read_types(name):
        (types,) = re.findall(rf"def Posenc_{name} : (.*?);", text, re.S)
        return {kind.lower() for kind in find(r"\b(BF16|[FI]\d\d|Index)\b", types)}

    # Passes make tiles of attention and of products, and regions end with a yield.
    parts = {"online_attention", "tile_product", "yield"}
    operations = find(r'\bdef Posenc_\w+Op\s*: \w*Op<(?:PosencDialect,\s*)?"(\w+)"')
    assert parts <= operations, operations
    return {
        "operations": operations - parts,
        "frequency scalings": find(r'Posenc_Scaling<"\w+", "(\w+)"'),
        "position scales": {name.lower() for name in find(
            r"OptionalAttr<Posenc_(\w+)Attr>:\$scale")},
        "pairings": read_enum("Pairing"),
        "precisions": read_enum("Precision"),
        "axis layouts": read_enum("AxisLayout"),
        "sinusoidal orders": read_enum("TableOrder"),
        "element types": read_types("Floats"),
        "position types": read_types("Positions"),
        "attention on GPUs": set(gpu_forms.SUPPORTED),
        "on NVIDIA GPUs": set(gpu_forms.ROWS),
        "not on GPUs": set(gpu_forms.UNSUPPORTED),
    }


def check_table(only=None):
    section = page.split("## What is supported\n")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| ([A-Za-z ]+) \| (.*) \|$", section + gpu_page, re.M))
    assert set(rows) == set(ROWS), f"rows {set(rows) ^ set(ROWS)}"
    assert only is None or only in rows, only
    language = read_language()
    for row, items in rows.items():
        if only and row != only:
            continue
        names = re.findall(r"`([^`]+)`", items)
        assert names, row
        missing = language.get(row, set(names)) ^ set(names)
        assert not missing, f"{row}: the table misses or adds {missing}"
        for name in names:
            ROWS[row](name)
            print(f"{row}: {name}")


def check_abi_programs():
    """Each program of the page on the C interface prints the text that follows it."""
    programs = re.findall(r"^```c\n(#include.*?)^```\n.*?^```text\n(.*?)^```$", abi_page,
                          re.M | re.S)
    assert len(programs) == 2
    for program, expected in programs:
        write("program.c", program)
        run([cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "program.c", "-o", "program",
             "-L.", "-lkernels", f"-Wl,-rpath,{work}"])
        output = run([os.path.join(work, "program")])
        assert output == expected, output


def check_cmake_keywords():
    """The table of keywords has those of posenc_add_kernel, with their flags."""
    path = os.path.join(source, "cmake", "PosencAddKernel.cmake")
    with open(path, encoding="utf-8") as file:
        lists = re.search(r"cmake_parse_arguments\(.*?\)", file.read(), re.S)[0]
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| (.*?) \|", abi_page, re.M))
    keywords = set(re.findall(r"[A-Z][A-Z_]+", lists)) - {"PARSE_ARGV", "ARG"}
    assert rows.keys() == keywords, rows.keys() ^ keywords
    for keyword, flag in rows.items():
        own = "--" + keyword.lower().replace("_", "-").replace("targets", "target")
        assert keyword in ("INPUT", "STATIC") or flag.startswith(f"`{own}`"), keyword


def check_rest():
    for commands in blocks("sh", abi_page):
        run_commands(commands)
    check_abi_programs()
    check_cmake_keywords()
    for example in blocks("mlir"):
        write("example.mlir", example)
        run(["posenc-compile", "example.mlir", "-o", "example.so"])


PARTS = {"program": [check_commands, check_c_program], "rest": [check_rest],
         "table": [check_table]}
for part in parts or PARTS:
    if part.startswith("llvm="):
        check_mlir_opt(part.partition("=")[2])
    elif part not in PARTS:
        check_table(part)
    for check in PARTS.get(part, ()):
        check()
