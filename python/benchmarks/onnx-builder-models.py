# ===- onnx-builder-models.py - models of ONNX Runtime GenAI's builder -----===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Builds small random models, compiles the files, and compares the results with those of
ONNX Runtime, and of the same file with dequantized weights in f64.

    python python/benchmarks/onnx-builder-models.py --folder models --models llama3,vit

needs torch 2.15, onnxruntime-genai 0.18, transformers 5.24, onnx 1.23.2, onnxscript 0.7.2
and onnxruntime 1.32. A folder that has a model is not built again. Decoders are built by
the model builder of onnxruntime-genai, and called twice: with the tokens of two sequences,
and then with one more token and the caches of the first call. Other models are those of
onnx-models.py, exported by torch.onnx.export; the weights of int4 are made by ONNX
Runtime's MatMulNBitsQuantizer.

A cell of the table has three numbers, each the largest difference of the first result,
relative to the largest number in it: from ONNX Runtime, from f64, and of ONNX Runtime from
f64, or only the second if ONNX Runtime does not run the file, as norms of queries in f16.
MatMulNBits computes in f32 (accuracy level 1), also in ONNX Runtime: the default of the
builder, level 4, rounds activations to 8 bits. Caches of a sliding
window are not built, since they are not supported. The exit status is 1 if a result is
wrong, or if a model is refused that is not known to be.
"""

import argparse
import contextlib
import importlib
import io
import os
import pathlib
import subprocess
import sys
import traceback
import warnings

from onnx_doubles import Doubles

SMALL = {"hidden_size": 128, "intermediate_size": 192, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 256,
         "max_position_embeddings": 256, "pad_token_id": 0, "bos_token_id": 1,
         "eos_token_id": 2}
HEAD_SIZE = 32
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 64,
          "rope_theta": 500000.0}
LONG = {"rope_type": "longrope", "type": "longrope", "short_factor": [1.0] * 8,
        "long_factor": [2.0] * 8, "rope_theta": 10000.0, "partial_rotary_factor": 0.5,
        "original_max_position_embeddings": 128}

# The class of the model, that of its config, and what differs from SMALL.
MODELS = {
    "llama3": ("LlamaForCausalLM", "LlamaConfig",
               {"rope_parameters": LLAMA3, "tie_word_embeddings": True}),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", {"tie_word_embeddings": True}),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", {"head_dim": 32}),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config",
               {"head_dim": 32, "sliding_window": 8, "query_pre_attn_scalar": 32}),
    "gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig",
               {"head_dim": 32, "sliding_window": 8, "query_pre_attn_scalar": 32}),
    "phi3": ("Phi3ForCausalLM", "Phi3Config",
             {"original_max_position_embeddings": 256, "sliding_window": 64}),
    "phi4-mini": ("Phi3ForCausalLM", "Phi3Config",
                  {"rope_parameters": LONG, "original_max_position_embeddings": 128,
                   "partial_rotary_factor": 0.5, "tie_word_embeddings": True}),
    "mistral": ("MistralForCausalLM", "MistralConfig", {"sliding_window": 8}),
    "smollm3": ("SmolLM3ForCausalLM", "SmolLM3Config",
                {"no_rope_layers": [1, 1], "tie_word_embeddings": True}),
    "gpt-oss": ("GptOssForCausalLM", "GptOssConfig",
                {"head_dim": 32, "num_local_experts": 4, "num_experts_per_tok": 2,
                 "sliding_window": 8, "layer_types": ["sliding_attention",
                                                      "full_attention"]}),
}
# Models of onnx-models.py.
EXPORTED = ("bert", "modernbert", "vit", "clip", "whisper")
PRECISIONS = ("int4", "fp16", "fp32")
TOLERANCES = {"int4": 1e-4, "fp16": 1e-2, "fp32": 1e-4}
# Parts of the messages of models that are known to be refused, and of the builder's for
# those that it cannot make of random weights.
KNOWN = ("MoE '", "QMoE '", "Original GPT-OSS MXFP4 tensor")


def save_source(name, folder):
    """Saves a random model, and a tokenizer, which the builder copies."""
    import tokenizers
    import torch
    import transformers

    kind, config, keys = MODELS[name]
    torch.manual_seed(5)
    config = getattr(transformers, config)(**{**SMALL, **keys})
    model = getattr(transformers, kind)(config).eval()
    generator = torch.Generator().manual_seed(3)
    for parameter in model.parameters():
        if parameter.dim() > 1:  # Weights of the usual size, so that layers matter.
            parameter.data = torch.randn(parameter.shape, generator=generator) * \
                parameter.shape[-1] ** -0.5
    model.save_pretrained(folder)
    words = {f"t{number}": number for number in range(SMALL["vocab_size"])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="t3"))
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="t1", eos_token="t2", pad_token="t0",
        unk_token="t3").save_pretrained(folder)


def export(name, precision, folder):
    """Returns the file of an exported model, which is made if it does not exist."""
    import onnx

    path = folder / f"{name}-{precision}" / "model.onnx"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    if precision == "int4":
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

        model = onnx.load(export(name, "fp32", folder))
        quantizer = MatMulNBitsQuantizer(model, block_size=32, accuracy_level=1)
        quantizer.process()
        onnx.save(quantizer.model.model, path)
    else:
        importlib.import_module("onnx-models").export(name, 18, False, path,
                                   "float16" if precision == "fp16" else "float32")
    return path


def build(name, precision, folder, extra):
    """Returns the file of a model, which is built if it does not exist."""
    if name in EXPORTED:
        return export(name, precision, folder)
    from onnxruntime_genai.models import builder

    source = folder / "sources" / name
    target = folder / f"{name}-{precision}{'-'.join(['', *extra]).replace('=', '_')}"
    path = target / "model.onnx"
    if path.exists():
        return path
    if not (source / "config.json").exists():
        save_source(name, source)
    # The builder has GroupQueryAttention of f16 for GPUs only; ONNX Runtime runs it.
    provider = "cuda" if precision == "fp16" else "cpu"
    with contextlib.redirect_stdout(io.StringIO()):
        options = builder.parse_extra_options(
            "", str(source), str(target), precision, provider, str(folder / "cache"),
            ["accuracy_level=1", *extra, "hf_token=false", "windowed_kv_cache=false"])
        config = options["hf_details"]["hf_config"]
        if "sliding_attention" in (config.rope_parameters or {}):
            # The builder reads the names that transformers 4 had.
            config.rope_local_base_freq = \
                config.rope_parameters["sliding_attention"]["rope_theta"]
            config.rope_parameters = config.rope_parameters["full_attention"]
        builder.create_model("", str(source), str(target), precision, provider,
                             str(folder / "cache"), **options)
    return path


def make_calls(name, model, random):
    """Returns the inputs of a first call and, for decoders, those of the next one, which
    lack the caches of the first call."""
    import numpy

    types = {1: numpy.float32, 7: numpy.int64, 10: numpy.float16}
    if name in EXPORTED:
        inputs = importlib.import_module("onnx-models").make_inputs(name)
        return [{value.name: inputs[value.name].numpy().astype(
            types[value.type.tensor_type.elem_type]) for value in model.graph.input}]
    calls = []
    for tokens, past in ((7, 0), (1, 7)):
        feeds = {}
        for value in model.graph.input:
            kind = types[value.type.tensor_type.elem_type]
            if value.name == "input_ids":
                feeds[value.name] = random.integers(3, 256, (2, tokens)).astype(kind)
            elif value.name == "attention_mask":
                feeds[value.name] = numpy.ones((2, past + tokens), kind)
            elif value.name == "position_ids":
                feeds[value.name] = numpy.tile(
                    numpy.arange(past, past + tokens, dtype=kind), (2, 1))
            elif past == 0:
                heads = value.type.tensor_type.shape.dim[1].dim_value
                feeds[value.name] = numpy.zeros((2, heads, 0, HEAD_SIZE), kind)
        calls.append(feeds)
    return calls


def open_session(path):
    import onnx
    import onnxruntime

    model = onnx.load(path)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "accuracy_level":
                attribute.i = 1
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def run_session(session, names, feeds):
    """Returns the results by name, or nothing if ONNX Runtime does not run the file."""
    try:
        return dict(zip(names, session.run(names, feeds)))
    except Exception as error:  # Of no class that is exported.
        if "are not supported" not in str(error):
            raise
        return {}


def measure(name, path, options):
    """Returns, for the first result and for the caches, three largest differences, each
    relative to the largest number: from ONNX Runtime, from f64, and of both references."""
    import numpy
    import onnx
    import posenc

    library = path.with_name("libmodel.so")
    done = subprocess.run([options.compiler, path, "-o", library, "--no-warnings",
                           "--opt-level=0"], capture_output=True, text=True)
    if done.returncode:
        message = (done.stderr.strip().splitlines() or ["no message"])[0]
        raise RuntimeError(message.removeprefix(f"{path}: "))
    kernels = posenc.load(library)
    function = getattr(kernels, next(iter(kernels)))
    model = onnx.load(path, load_external_data=False)
    names = [value.name for value in model.graph.output]
    session, doubles = open_session(path), Doubles(onnx.load(path))
    worst = {"result": numpy.zeros(3), "caches": numpy.zeros(3)}
    caches = {}
    for feeds in make_calls(name, model, numpy.random.default_rng(7)):
        feeds.update(caches)
        results = function(*(feeds[value.name] for value in model.graph.input))
        results = results if isinstance(results, (tuple, list)) else [results]
        ours = dict(zip(names, map(numpy.asarray, results)))
        theirs, exact = run_session(session, names, feeds), doubles.run(feeds)
        for output in names:
            a, c = ours[output].astype(float), exact[output]
            b = theirs[output].astype(float) if theirs else numpy.full(c.shape, numpy.nan)
            if not a.shape == b.shape == c.shape:
                raise RuntimeError(f"{output} has shape {a.shape}, not {c.shape}")
            kind = "result" if output == names[0] else "caches"
            found = [abs(x - y).max() / abs(c).max() for x, y in ((a, b), (a, c), (b, c))]
            worst[kind] = numpy.maximum(worst[kind], found)
        caches = {output.replace("present", "past_key_values"): value
                  for output, value in ours.items() if output != names[0]}
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--models", default=",".join([*MODELS, *EXPORTED]))
    parser.add_argument("--precisions", default=",".join(PRECISIONS))
    parser.add_argument("--extra", default="", help="options of the builder, KEY=VALUE,...")
    parser.add_argument("--compiler", default="posenc-compile")
    parser.add_argument("--build-only", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    os.environ["HF_HUB_OFFLINE"] = "1"
    precisions = options.precisions.split(",")
    print("| model |", " | ".join(precisions), "|")
    print("|---" * (len(precisions) + 1) + "|")
    extra = [one for one in options.extra.split(",") if one]
    failures = 0
    for name in options.models.split(","):
        cells = []
        for precision in precisions:
            try:
                path = build(name, precision, options.folder, extra)
                if options.build_only:
                    continue
                worst = measure(name, path, options)
                # A difference is not a number where ONNX Runtime has no result.
                is_wrong = any((found[:2] > TOLERANCES[precision]).any() or
                               found[1] != found[1] for found in worst.values())
                cells.append(("wrong: " if is_wrong else "") +
                             " / ".join("–" if found != found else f"{found:.1e}"
                                        for found in worst["result"]))
            except Exception as error:  # Whatever the packages raise.
                text = str(error).strip().splitlines() or [type(error).__name__]
                is_wrong = not any(part in text[0] for part in KNOWN)
                cells.append(f"{'fails' if is_wrong else 'refused'}: {text[0][:160]}")
                if os.environ.get("TRACE"):
                    traceback.print_exc()
            failures += is_wrong
        print("|", " | ".join([name, *cells]), "|", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
