# ===- onnx-models.py - exported models, compiled and compared -------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Exports small random models by torch.onnx.export, compiles the files, and compares
the results with ONNX Runtime's.

    python python/benchmarks/onnx-models.py --folder /tmp/models
    python python/benchmarks/onnx-models.py --folder /tmp/models --models llama,vit

needs these packages, whose versions the table was made with: torch 2.15, transformers
5.24, onnx 1.23.2, onnxscript 0.7.2 and onnxruntime 1.32. A file that is in the folder is
not exported again. The table has, for each model, opset, and static or dynamic sizes:
the rotations and attentions that were found of those that the model has, and the largest
difference of the first result, relative to the largest number in it. The exit status is
1 if one fails, or is not found.
"""

import argparse
import importlib.util
import os
import pathlib
import subprocess
import sys
import time
import warnings

SMALL = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
         "num_attention_heads": 4, "vocab_size": 128, "max_position_embeddings": 128,
         "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
GROUPED = {**SMALL, "num_key_value_heads": 2}

# The class of the model, that of its config, and the config.
MODELS = {
    "llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", {**GROUPED, "head_dim": 16}),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config",
               {**GROUPED, "head_dim": 16, "sliding_window": 4}),
    "gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig",
               {**GROUPED, "head_dim": 16, "sliding_window": 4}),
    "gpt-neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", SMALL),
    "gptj": ("GPTJForCausalLM", "GPTJConfig",
             {"n_embd": 64, "n_layer": 2, "n_head": 4, "rotary_dim": 8,
              "vocab_size": 128, "n_positions": 128, "bos_token_id": 1,
              "eos_token_id": 2}),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", GROUPED),
    "glm": ("GlmForCausalLM", "GlmConfig", {**GROUPED, "head_dim": 16}),
    "cohere": ("CohereForCausalLM", "CohereConfig", GROUPED),
    "modernbert": ("ModernBertModel", "ModernBertConfig",
                   {**SMALL, "cls_token_id": 1, "sep_token_id": 2,
                    "local_attention": 8}),
    "t5": ("T5ForConditionalGeneration", "T5Config",
           {"d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 2, "num_heads": 4,
            "vocab_size": 128, "decoder_start_token_id": 0}),
    "bloom": ("BloomForCausalLM", "BloomConfig",
              {"hidden_size": 64, "n_layer": 2, "n_head": 4, "vocab_size": 128}),
    "vit": ("ViTModel", "ViTConfig",
            {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
             "num_attention_heads": 4, "image_size": 32, "patch_size": 8}),
    "dinov3": ("DINOv3ViTModel", "DINOv3ViTConfig",
               {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
                "num_attention_heads": 4, "image_size": 32, "patch_size": 8}),
}
# More models of text, for `--models more`.
MORE = {
    "mistral": ("MistralForCausalLM", "MistralConfig", {**GROUPED, "sliding_window": 4}),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", GROUPED),
    "phi": ("PhiForCausalLM", "PhiConfig", {**SMALL, "partial_rotary_factor": 0.5}),
    "falcon": ("FalconForCausalLM", "FalconConfig",
               {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                "vocab_size": 128, "new_decoder_architecture": False,
                "multi_query": True, "parallel_attn": True}),
    "stablelm": ("StableLmForCausalLM", "StableLmConfig", GROUPED),
    "olmo2": ("Olmo2ForCausalLM", "Olmo2Config", GROUPED),
    "starcoder2": ("Starcoder2ForCausalLM", "Starcoder2Config", GROUPED),
    "granite": ("GraniteForCausalLM", "GraniteConfig", GROUPED),
    "smollm3": ("SmolLM3ForCausalLM", "SmolLM3Config", GROUPED),
    "nemotron": ("NemotronForCausalLM", "NemotronConfig", GROUPED),
    "cohere2": ("Cohere2ForCausalLM", "Cohere2Config", {**GROUPED, "sliding_window": 4}),
    "glm4": ("Glm4ForCausalLM", "Glm4Config", {**GROUPED, "head_dim": 16}),
    "exaone4": ("Exaone4ForCausalLM", "Exaone4Config", {**GROUPED, "sliding_window": 4}),
    "ernie": ("Ernie4_5ForCausalLM", "Ernie4_5Config", GROUPED),
    "persimmon": ("PersimmonForCausalLM", "PersimmonConfig", SMALL),
    "codegen": ("CodeGenForCausalLM", "CodeGenConfig",
                {"n_embd": 64, "n_layer": 2, "n_head": 4, "rotary_dim": 8,
                 "vocab_size": 128, "n_positions": 128}),
    "deepseek3": ("DeepseekV3ForCausalLM", "DeepseekV3Config",
                  {**SMALL, "num_key_value_heads": 4, "q_lora_rank": 24,
                   "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16,
                   "v_head_dim": 16, "first_k_dense_replace": 2, "n_routed_experts": 4,
                   "n_group": 2, "topk_group": 1, "num_experts_per_tok": 2,
                   "moe_intermediate_size": 32}),
    "llama-yarn": ("LlamaForCausalLM", "LlamaConfig",
                   {**GROUPED, "rope_parameters": {
                       "rope_type": "yarn", "factor": 4.0, "rope_theta": 10000.0,
                       "original_max_position_embeddings": 32}}),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config",
             {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 128,
              "n_positions": 128}),
    "opt": ("OPTForCausalLM", "OPTConfig",
            {"hidden_size": 64, "ffn_dim": 96, "num_hidden_layers": 2,
             "num_attention_heads": 4, "vocab_size": 128, "word_embed_proj_dim": 64,
             "max_position_embeddings": 128}),
    "bert": ("BertModel", "BertConfig", SMALL),
    "roberta": ("RobertaModel", "RobertaConfig", SMALL),
    "distilbert": ("DistilBertModel", "DistilBertConfig",
                   {"dim": 64, "hidden_dim": 96, "n_layers": 2, "n_heads": 4,
                    "vocab_size": 128}),
    "esm": ("EsmModel", "EsmConfig",
            {**SMALL, "position_embedding_type": "rotary", "mask_token_id": 3}),
    "clip": ("CLIPModel", "CLIPConfig",
             {"projection_dim": 32,
              "text_config": {**SMALL, "projection_dim": 32},
              "vision_config": {"hidden_size": 64, "intermediate_size": 96,
                                "num_hidden_layers": 2, "num_attention_heads": 4,
                                "image_size": 32, "patch_size": 8,
                                "projection_dim": 32}}),
    "whisper": ("WhisperForConditionalGeneration", "WhisperConfig",
                {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2,
                 "encoder_attention_heads": 4, "decoder_attention_heads": 4,
                 "encoder_ffn_dim": 96, "decoder_ffn_dim": 96, "vocab_size": 128,
                 "num_mel_bins": 16, "max_source_positions": 32,
                 "max_target_positions": 32, "pad_token_id": 0, "bos_token_id": 1,
                 "eos_token_id": 2, "decoder_start_token_id": 1}),
    # Its logits are a sum of three products, which posenc.attention has not.
    "deberta": ("DebertaV2Model", "DebertaV2Config",
                {**SMALL, "relative_attention": True, "position_buckets": 16,
                 "pos_att_type": ["p2c", "c2p"]}),
}
IMAGES = ("vit", "dinov3")
# Models without a cache of keys and values.
ENCODERS = (*IMAGES, "modernbert", "bert", "roberta", "distilbert", "esm", "deberta",
            "clip")
EAGER = ("gemma2", "t5", "deberta", "codegen")
WITHOUT_ROTATIONS = ("t5", "bloom", "vit", "gpt2", "opt", "bert", "roberta", "distilbert",
                     "deberta", "clip", "whisper")


def load(name):
    """Returns the module of another script in this folder."""
    path = pathlib.Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RAISED = load("raised")


def count_expected(name):
    """Returns the rotations and attentions of a model of two layers that can be found."""
    attentions = {"t5": 6, "whisper": 6, "clip": 4, "deberta": 0}.get(name, 2)
    return (0 if name in WITHOUT_ROTATIONS else 4), attentions


def make_inputs(name):
    """Returns the example inputs by the names of the model's arguments."""
    import torch

    generator = torch.Generator().manual_seed(7)
    if name in IMAGES:
        return {"pixel_values": torch.randn(2, 3, 32, 32, generator=generator)}
    tokens = torch.randint(3, 128, (2, 12), generator=generator)
    if name == "clip":
        return {"input_ids": tokens, "pixel_values": torch.randn(3, 3, 32, 32,
                                                                 generator=generator)}
    if name == "whisper":
        return {"input_features": torch.randn(2, 16, 64, generator=generator),
                "decoder_input_ids": tokens[:, :6].contiguous()}
    if name == "t5":
        return {"input_ids": tokens, "decoder_input_ids": tokens[:, :6].contiguous()}
    return {"input_ids": tokens}


def make_model(name):
    import torch
    import transformers

    kind, config, keys = {**MODELS, **MORE}[name]
    torch.manual_seed(5)
    # torch 2.15 fails to export T5 with scaled_dot_product_attention.
    attention = {} if name in ("gptj", "bloom") else {
        "attn_implementation": "eager" if name in EAGER else "sdpa"}
    config = getattr(transformers, config)(**keys, **attention)
    model = getattr(transformers, kind)(config).eval()
    names = list(make_inputs(name))

    class Wrapper(torch.nn.Module):
        """The first result as a function of tensors."""

        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *inputs):
            extra = {} if name in ENCODERS else {"use_cache": False}
            return self.model(**dict(zip(names, inputs)), **extra, return_dict=True)[0]

    return Wrapper().eval()


def export(name, opset, is_dynamic, path, dtype="float32"):
    import torch

    kind = getattr(torch, dtype)
    inputs = {key: value.to(kind) if value.is_floating_point() else value
              for key, value in make_inputs(name).items()}
    shapes = None
    if is_dynamic:
        axes = {"pixel_values": {0: "images"}, "input_features": {0: "batch"},
                "decoder_input_ids": {0: "batch", 1: "targets"},
                "input_ids": {0: "batch", 1: "tokens"}}
        shapes = (tuple(axes[key] for key in inputs),)
    torch.onnx.export(make_model(name).to(kind), tuple(inputs.values()), path, dynamo=True,
                      opset_version=opset, dynamic_shapes=shapes, external_data=False,
                      input_names=list(inputs), output_names=["result"], verbose=False)


def measure(name, path, options):
    """Returns the columns of a row, and whether it is as expected."""
    import numpy
    import onnxruntime
    import posenc

    library = path.with_name("lib" + path.stem.replace("-", "_") + ".so")
    start = time.perf_counter()
    done = subprocess.run([options.compiler, path, "-o", library, "--no-warnings",
                           "--opt-level=0"], capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if done.returncode:
        message = (done.stderr.strip().splitlines() or ["no message"])[0]
        raise RuntimeError(message.removeprefix(f"{path}: "))
    *found, _, left = RAISED.inspect(options.compiler, path, options.folder)
    kernels = posenc.load(library)
    session_options = onnxruntime.SessionOptions()
    session_options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), session_options)
    inputs = make_inputs(name)
    if "dynamic" in path.stem and name not in IMAGES:
        # Other sizes than those of the export.
        inputs = {key: (value[:1, :-1] if value.dim() == 2 else value[:1]).contiguous()
                  for key, value in inputs.items()}
    feeds = {key: inputs[key].numpy() for key in
             (one.name for one in session.get_inputs())}
    expected = session.run(None, feeds)[0]
    function = getattr(kernels, next(iter(kernels)))
    difference = RAISED.compare(numpy.asarray(function(*feeds.values())), expected)
    columns, is_right = RAISED.judge(found, count_expected(name), difference,
                                     options.tolerance)
    return [*columns, f"{seconds:.1f}", left], is_right


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path, required=True,
                        help="folder of the exported files")
    parser.add_argument("--models", default=",".join(MODELS),
                        help="names of models, or 'more' for another 27")
    parser.add_argument("--opsets", default="18,23")
    parser.add_argument("--compiler", default="posenc-compile")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    parser.add_argument("--export-only", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    os.environ["HF_HUB_OFFLINE"] = "1"
    options.folder.mkdir(parents=True, exist_ok=True)
    passed = total = 0
    print("| model | opset | sizes | rotations | attentions | result | difference "
          "| seconds | left alone |\n|---|---|---|---|---|---|---|---|---|")
    names = ",".join(MORE) if options.models == "more" else options.models
    for name in names.split(","):
        for opset in map(int, options.opsets.split(",")):
            for sizes in ("static", "dynamic"):
                path = options.folder / f"{name}-{opset}-{sizes}.onnx"
                total += 1
                step = "export fails"
                try:
                    if not path.exists():
                        export(name, opset, sizes == "dynamic", path)
                    if options.export_only:
                        continue
                    step = "fails"
                    columns, is_right = measure(name, path, options)
                except Exception as error:  # Whatever the packages raise.
                    text = str(error).strip().splitlines() or [type(error).__name__]
                    columns = ["", "", f"{step}: {text[0][:160]}", "", "", ""]
                    is_right = False
                passed += is_right
                print("|", " | ".join(map(str, [name, opset, sizes, *columns])), "|",
                      flush=True)
    print(f"\n{passed} of {total} are as expected")
    return 0 if options.export_only or passed == total else 1


if __name__ == "__main__":
    sys.exit(main())
