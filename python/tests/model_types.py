# ===- model_types.py - models of transformers to compare with --------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""What test_model_types.py compares: the rotation and the attention of a model type in
transformers, from modules without weights, and those of the functions of Posenc."""

from __future__ import annotations

import copy
import importlib
import inspect
import os
import re
import subprocess
from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedModel
from transformers.initialization import no_init_weights
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

TOKENS = 3
# The window of an attention that hides keys by its mask alone.
UNKNOWN = -1


class NotComparable(Exception):
    """Says why a model cannot be compared."""


# ===----------------------------------------------------------------------===#
# Posenc
# ===----------------------------------------------------------------------===#

def find_compiler() -> str | None:
    folder = os.environ.get("POSENC_BIN")
    return os.path.join(folder, "posenc-compile") if folder else None


def list_model_types() -> list[str]:
    listing = subprocess.run([find_compiler(), "--list-models"], check=True,
                             capture_output=True, text=True).stdout
    return [line.split(":")[0] for line in listing.splitlines()]


def list_known_types() -> list[str]:
    """Returns the supported model types that transformers has."""
    return [name for name in list_model_types() if name in CONFIG_MAPPING]


@dataclass(frozen=True)
class Reading:
    """The types whose own code reads a key that is read for all; None: most of them. The
    others have a warning."""
    readers: list[str] | None
    ignoring: list[str]

    def is_for(self, model_type: str) -> bool:
        return model_type in self.readers if self.readers else \
            model_type not in self.ignoring


def list_readings() -> dict[str, Reading]:
    """Returns who reads the keys that some types do not read."""
    listing = subprocess.run([find_compiler(), "--list-keys"], check=True,
                             capture_output=True, text=True).stdout
    result = {}
    for line in listing.splitlines():
        name, *_, reading = line.split(" | ")
        ignoring = re.findall(r"read with a warning for ([^;]+)", reading)
        readers = re.match(r"read for ([^;]+); else read with a warning$", reading)
        if ignoring or readers:
            result[name] = Reading(readers[1].split(", ") if readers else None,
                                   [one for names in ignoring for one in names.split(", ")])
    return result


def list_types_of_key(key: str) -> dict[str, list[str]]:
    """Returns the types for which a key is read, ignored, and so on."""
    listing = subprocess.run([find_compiler(), "--list-keys"], check=True,
                             capture_output=True, text=True).stdout
    [reading] = [line.split(" | ")[3] for line in listing.splitlines()
                 if line.startswith(f"{key} | ")]
    return {how: names.split(", ") for how, names in re.findall(r"(\w+) for ([^;]+)",
                                                                reading)}


def emit(path, kernels: str) -> str:
    """Returns the functions of a config as MLIR, or raises NotComparable with the first
    error."""
    result = subprocess.run(
        [find_compiler(), path, "--emit=posenc", "-o", "-", f"--kernels={kernels}",
         "--no-warnings"], capture_output=True, text=True, check=False)
    if result.returncode:
        raise NotComparable(re.search(r"error: (.*)", result.stderr)[1])
    return result.stdout


def emit_read_keys(path, kernels: str) -> str | None:
    """Returns the functions of a config as MLIR, unless it has an error or a key that the
    code of its type does not read."""
    result = subprocess.run(
        [find_compiler(), path, "--emit=posenc", "-o", "-", f"--kernels={kernels}"],
        capture_output=True, text=True, check=False)
    is_unread = "is read, but the code of" in result.stderr
    return None if result.returncode or is_unread else result.stdout


@dataclass(frozen=True)
class Heads:
    """The heads of an attention, the scale of its scores to 6 digits, the soft cap, and
    the window of keys up to the query's own; None: not given."""
    queries: int
    keys: int
    channels: int
    value_channels: int
    scale: float
    soft_cap: float | None = None
    window: int | None = None
    has_sinks: bool = False


@dataclass(frozen=True)
class Function:
    """A function in MLIR, its name without that of the family, and its layers, if the
    functions of layers differ."""
    text: str
    suffix: str
    layers: list[int]

    def is_for(self, layer: int) -> bool:
        if self.layers:
            return layer in self.layers
        return self.suffix in ("", "decoder")


def split_functions(module: str, family: str) -> tuple[str, list[Function]]:
    """Returns what precedes the functions of a module, and those of a family, such as
    "attention"."""
    first, *texts = re.split(r"(?=^  func\.func )", module, flags=re.MULTILINE)
    functions = []
    for text in texts:
        name = re.search(r"@(\w+)", text)[1]
        layers = re.search(r"posenc\.layers = array<i64: ([^>]*)>", text)
        text = re.sub(r"posenc\.doc = \"[^\"]*\"(, )?", "", text.rsplit("\n}", 1)[0])
        if re.fullmatch(rf"{family}(_\w+)?", name):
            functions.append(Function(text, name.removeprefix(family).removeprefix("_"),
                                      [int(one) for one in layers[1].split(",")]
                                      if layers else []))
    return first, functions


def read_heads(function: Function) -> Heads:
    """Returns the heads of a function `attention`."""
    types = re.search(r"posenc\.attention .*? ins\([^:]*: ([^)]*)\)", function.text)[1]
    q, k, v = ([int(size) for size in re.findall(r"(\d+)(?=x)", shape)]
               for shape in re.findall(r"tensor<([^>]*)>", types)[:3])

    def number(name):
        found = re.search(rf" {name} = ([-+.\de]+)", function.text)
        return float(found[1]) if found else None

    cap = re.search(r"%(\w+) = arith\.constant (\S+) : \w+\n *%\w+ = arith\.divf %s, %\1 "
                    r".*\n *%\w+ = math\.tanh", function.text)
    scale = number("scale") or q[1] ** -0.5
    window = number("window_left")
    return Heads(q[0], k[0], q[1], v[1], float(f"{scale:.6g}"),
                 float(cap[2]) if cap else None,
                 None if window is None else int(window) + 1,
                 " sinks" in function.text)


# ===----------------------------------------------------------------------===#
# Models of transformers
# ===----------------------------------------------------------------------===#

# Keys without which transformers cannot make a model of the default config, or makes one
# that does not rotate.
HEAD = {"head_dim": 128}
HALF_ROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0,
                                 "partial_rotary_factor": 0.5}}
COMPLETED = {
    "bamba": {"attn_layer_indices": [9, 18, 27]},
    "dots1": {"n_routed_experts": 8, "n_shared_experts": 1},
    "esm": {"vocab_size": 33, "pad_token_id": 1, "position_embedding_type": "rotary"},
    "glm4_moe": HEAD,
    "glm4v": {"text_config": HALF_ROPE},
    "glm4v_text": HALF_ROPE,
    "glm4v_moe": {"text_config": HEAD},
    "glm4v_moe_text": HEAD,
    "glm_image_text": HALF_ROPE,
    "granitemoehybrid": {"position_embedding_type": "rope",
                         "layer_types": ["mamba", "attention"] * 16},
    "hunyuan_v1_dense": HEAD,
    "hunyuan_v1_moe": HEAD,
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 16},
    "ministral": HEAD,
    "nemotron": {**HEAD, "num_key_value_heads": 8},
    "qwen3_omni_moe": {"thinker_config": {"text_config": HEAD}},
    "qwen3_omni_moe_text": HEAD,
    "qwen3_omni_moe_thinker": {"text_config": HEAD},
    "zamba2": {"use_mem_rope": True},
}


def make_config(model_type: str):
    """Returns the default config of a type, with the keys of COMPLETED."""
    return CONFIG_MAPPING[model_type](**COMPLETED.get(model_type, {}))


def find_model_classes(config) -> list[type[PreTrainedModel]]:
    """Returns the classes of models without head whose config is of the given class,
    the likeliest first."""
    name = type(config).__module__.replace(".configuration_", ".modeling_")
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError:
        raise NotComparable("transformers has no model of this config") from None
    classes = [value for value in vars(module).values()
               if inspect.isclass(value) and issubclass(value, PreTrainedModel)
               and value.__module__ == name and value.config_class is type(config)
               and not re.search(r"PreTrained|For[A-Z]|WithProjection|LMHead",
                                 value.__name__)]
    if not classes:
        raise NotComparable("transformers has no model of this config")
    return sorted(classes, key=lambda value: (not value.__name__.endswith("Model"),
                                              len(value.__name__)))


def is_of_text(model, module) -> bool:
    """Whether a module is none of images or sounds, unless the whole model is."""
    others = re.findall(r"Vision|Audio", type(module).__name__)
    return all(other in type(model).__name__ for other in others)


def find_rotaries(model) -> list[torch.nn.Module]:
    """Returns one module of each class of rotations of texts."""
    return list({type(module): module for module in model.modules()
                 if re.search(r"Rotary|Rope", type(module).__name__)
                 and is_of_text(model, module)}.values())


def make_model(config) -> PreTrainedModel:
    """Returns the model on the device `meta`, without weights; if several classes have
    this config, one that rotates."""
    try:
        with torch.device("meta"), no_init_weights():
            models = (one(config) for one in find_model_classes(config))
            first = next(models)
            if find_rotaries(first):
                return first
            return next((one for one in models if find_rotaries(one)), first)
    except (AttributeError, ImportError, KeyError, TypeError):
        raise NotComparable("transformers cannot make the model of its default config"
                            ) from None


def make_rotary(model) -> torch.nn.Module:
    """Returns the rotation of a model, with its frequencies."""
    rotaries = find_rotaries(model)
    if not rotaries:
        raise NotComparable("the model has no module of the rotation")
    if len(rotaries) > 1:
        raise NotComparable("the model has several modules of rotations")
    [module] = rotaries
    if not hasattr(module, "config"):
        raise NotComparable("the module of the rotation has no config")
    return type(module)(module.config)


# Values of keys that differ from all defaults.
KEY_VALUES = {"rope_theta": 123456.0, "rope_local_base_freq": 54321.0,
              "local_rope_theta": 54321.0, "swa_rope_theta": 54321.0,
              "rope_scaling": {"rope_type": "linear", "factor": 4.0},
              "rope_parameters": {"rope_type": "linear", "factor": 4.0}, "rotary_dim": 8}


def change_config(config, key: str) -> dict:
    """Returns the members of a config with one of KEY_VALUES as its only such key."""
    members = {name: value for name, value in config.to_dict().items()
               if name not in KEY_VALUES}
    return {**members, key: copy.deepcopy(KEY_VALUES[key])}


def reads_key(rotary, key: str, completed: dict) -> bool:
    """Whether the frequencies of a module depend on a key that is the only one for them in
    a config, beside those of `completed`."""
    def make(**keys):
        config = type(rotary.config)(**copy.deepcopy({**completed, **keys}))
        return dict(type(rotary)(config).named_buffers())

    without = make()
    try:
        given = make(**{key: KEY_VALUES[key]})
    except Exception as error:  # For example, a dictionary for each layer type is missing.
        raise NotComparable(f"the key is an error: {error}") from None
    return any(without[name].shape != given[name].shape
               or not torch.equal(without[name], given[name]) for name in without)


def reads_partial_factor(rotary) -> bool:
    """Whether the number of frequencies of a module follows from the part of a head that
    the config says rotates."""
    shapes = []
    for factor in (0.5, 1.0):
        config = copy.deepcopy(rotary.config)
        parameters = getattr(config, "rope_parameters", None)
        if not parameters:
            raise NotComparable("the config has no parameters of a rotation")
        dictionaries = [one for one in parameters.values() if isinstance(one, dict)]
        for one in dictionaries or [parameters]:
            one.update(rope_type="default", partial_rotary_factor=factor)
        try:
            module = type(rotary)(config)
        except ValueError:
            raise NotComparable("the rotation has no default type") from None
        shapes.append([buffer.shape for buffer in module.buffers()])
    return shapes[0] != shapes[1]


def call_rotary(rotary, positions: torch.Tensor, layer_type: str | None):
    """Returns what the module of a rotation returns for positions [batch, tokens] or
    [axes, batch, tokens]."""
    kwargs = {}
    if "layer_type" in inspect.signature(rotary.forward).parameters:
        kwargs["layer_type"] = layer_type
    return rotary(torch.zeros(1, positions.shape[-1], 8), positions, **kwargs)


def read_tables(result) -> tuple[np.ndarray, np.ndarray]:
    """Returns cos and sin of each pair, [..., tokens, pairs], from what the module of a
    rotation returns: complex numbers, or cos and sin of each channel."""
    if isinstance(result, torch.Tensor):
        return result.real.double().numpy()[0], result.imag.double().numpy()[0]
    tables = []
    for table in result:
        table = table.double().numpy()
        pairs = table.shape[-1] // 2
        halves = np.array_equal(table[..., :pairs], table[..., pairs:])
        repeated = np.array_equal(table[..., ::2], table[..., 1::2])
        if halves or repeated:
            table = table[..., :pairs] if halves else table[..., ::2]
        tables.append(table[0] if table.ndim == 3 else table[:, 0])
    return tables[0], tables[1]


def find_apply(model, config):
    """Returns the function by which a model rotates queries and keys by tables."""
    module = vars(inspect.getmodule(type(model)))
    names = ["apply_multimodal_rotary_pos_emb", "apply_rotary_pos_emb",
             "apply_rotary_emb"]
    is_audio = "Audio" in type(model).__name__  # Beside a text model that interleaves.
    if getattr(config, "rope_interleave", True) and not is_audio:
        names.insert(0, "apply_rotary_pos_emb_interleave")
    return next((module[name] for name in names if name in module), None)


def rotate_by_model(apply, result, config, q, k):
    """Rotates q and k [batch, heads, tokens, channels]."""
    parameters = inspect.signature(apply).parameters
    if isinstance(result, torch.Tensor):
        if "deepseek" in apply.__module__:
            return apply(q, k, result)
        # Heads follow tokens.
        rotated = apply(q.transpose(1, 2), k.transpose(1, 2), result)
        return tuple(x.transpose(1, 2) for x in rotated)
    if "k" not in parameters:  # One tensor a call.
        return tuple(apply(x, *result) for x in (q, k))
    if "mrope_section" in parameters:
        return apply(q, k, *result, config.rope_parameters["mrope_section"])
    return apply(q, k, *result)


# ===----------------------------------------------------------------------===#
# Attention of transformers
# ===----------------------------------------------------------------------===#

def find_layer_type(config, function: Function | None = None, layer: int | None = None
                    ) -> str | None:
    """Returns the type of the layers of a function, or of a layer."""
    types = getattr(config, "layer_types", None)
    if function is not None:
        if not types or function.suffix in types:
            return function.suffix or None
        layer = function.layers[0] if function.layers else 0
    return types[layer] if types and layer < len(types) else None


class Tables:
    """The tables of a model for each layer, on the device `meta`."""

    def __init__(self, model):
        self.config = model.config
        self.rotary = make_rotary(model)
        self.tables: dict[str | None, object] = {}
        # What layers hand to later ones.
        self.shared: dict = {}

    def find(self, layer: int):
        layer_type = find_layer_type(self.config, layer=layer)
        if layer_type not in self.tables:
            positions = torch.arange(TOKENS)[None]
            try:
                result = call_rotary(self.rotary, positions, layer_type)
            except (IndexError, RuntimeError):  # Several axes.
                result = call_rotary(self.rotary, positions[None].expand(3, 1, -1),
                                     layer_type)
            except TypeError:
                raise NotComparable("the rotation takes no positions") from None
            self.tables[layer_type] = (
                result.to("meta") if isinstance(result, torch.Tensor)
                else tuple(table.to("meta") for table in result))
        return self.tables[layer_type]


def find_attentions(model) -> list[tuple[int, torch.nn.Module]]:
    """Returns the self-attention of each layer that has one, with its number; of an
    encoder-decoder model, those of the decoder."""
    found: dict[int, torch.nn.Module] = {}
    for name, module in getattr(model, "decoder", model).named_modules():
        kind = type(module).__name__
        layer = re.search(r"(?:^|\.)(?:layers?|h|blocks)\.(\d+)\.(?!.*\.\d+)", name)
        if (layer and re.search(r"Attention$|MLA$", kind)
                and not re.search(r"Cross|Linear|Lightning|Delta", kind)
                and is_of_text(model, module)
                and not getattr(module, "is_cross_attention", False)
                and any(isinstance(part, torch.nn.Linear) for part in module.modules())):
            found.setdefault(int(layer[1]), module)
    return sorted(found.items())


def record_attention(attention: torch.nn.Module, tables: Tables, layer: int) -> Heads:
    """Calls the attention of a layer on the device `meta` and returns the shapes with
    which it computes scores."""
    records = []

    def probe(module, query, key, value, attention_mask, scaling=None, dropout=0.0,
              softcap=None, sliding_window=UNKNOWN, s_aux=None, **_):
        scale = scaling if scaling is not None else query.shape[-1] ** -0.5
        records.append(Heads(query.shape[1], key.shape[1], query.shape[-1],
                             value.shape[-1], float(f"{scale:.6g}"), softcap,
                             sliding_window, s_aux is not None))
        shape = (query.shape[0], query.shape[2], query.shape[1], value.shape[-1])
        return torch.empty(shape, device="meta"), None

    ALL_ATTENTION_FUNCTIONS.register("posenc_probe", probe)
    if not hasattr(attention, "config"):
        raise NotComparable("the attention has no config")
    attention.config._attn_implementation = "posenc_probe"
    inputs = next(part.in_features for part in attention.modules()
                  if isinstance(part, torch.nn.Linear))
    parameters = inspect.signature(attention.forward).parameters
    positions = torch.arange(TOKENS, device="meta")[None]
    values = {"hidden_states": torch.empty(1, TOKENS, inputs, device="meta"),
              "position_embeddings": tables.find(layer), "position_ids": positions,
              "shared_kv_states": tables.shared}
    required = [name for name, parameter in parameters.items()
                if parameter.default is inspect.Parameter.empty
                and parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
    try:
        attention(**{name: values.get(name) for name in parameters
                     if name in values or name in required})
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        raise NotComparable("the attention cannot be called alone") from None
    if len(records) != 1:
        raise NotComparable("the attention does not call a kernel")
    return records[0]
