# ===- config-search.py - random configs of models -------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Compiles random configs and compares tables, layers and heads with transformers'.

    POSENC_BIN=build/bin python python/benchmarks/config-search.py --seed=1 --count=1000

needs torch and transformers. Config n of a seed depends on the seed and n alone; --only=n
repeats it. A config has a model type that both know, sizes, a rotation of each type in
the spellings of rope_parameters and of rope_scaling, by layer type or not, windows and
kinds of layers, as far as the type's class accepts them. It is written with these keys
alone or as transformers saves it. Compared are, for each layer,

- the tables of its function `sincos` with the rotary module of the model: with exact
  angles, the module runs in f64, at positions up to a million; with --precision=hf_f32,
  it runs as it is;
- the heads, scale, soft cap and window of its function `attention` with those of a call
  of the model's attention, whether it rotates, and by which frequencies.

A config that Posenc refuses, or of which it warns that it reads a key that the model does
not, counts as refused. One whose model cannot be called alone counts as not comparable. A
wrong config is shortened: keys are removed, and values are made simple. The search ends
with 1 if there is one. --fault=NAME changes the config before it is compiled: each one
whose results depend on that must be reported.
"""

import argparse
import collections
import copy
import inspect
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import posenc
import search_limits
import torch
import transformers
from torch.overrides import TorchFunctionMode
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests"))
import model_types as models
from config_keys import Draw, simplify

Skip = models.NotComparable
# Attention rotates by the base of the layer, which the tables do not show; and without
# the default dictionary, the tables have the size of whole heads.
OTHER_TABLES = ("granite_swa", "granitemoe_swa", "mistral4")


class Wrong(Exception):
    """A result that is not that of transformers."""


class Doubles(TorchFunctionMode):
    """Computes in f64 what is written for f32."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.float:
            function = torch.Tensor.double
        swap = {torch.float32: torch.float64}
        args = [swap.get(x, x) if isinstance(x, torch.dtype) else x for x in args]
        kwargs = {name: swap.get(x, x) if isinstance(x, torch.dtype) else x
                  for name, x in (kwargs or {}).items()}
        return function(*args, **kwargs)


# ===----------------------------------------------------------------------===#
# Transformers
# ===----------------------------------------------------------------------===#

def make_config(model_type, keys):
    """Returns the config of the keys, or None if the class does not accept them."""
    members = copy.deepcopy({**models.COMPLETED.get(model_type, {}), **keys})
    try:
        config = CONFIG_MAPPING[model_type].from_dict({"model_type": model_type, **members})
        json.dumps(config.to_dict())
    except Exception:  # Each class has its own.
        return None
    return config


def make_rotary(config):
    """Returns the rotation of a model."""
    try:
        return models.make_rotary(models.make_model(config))
    except Skip:
        raise
    except Exception as error:
        raise Skip(f"transformers: {type(error).__name__}: {error}") from None


def count_pairs(model_type, keys):
    """The number of pairs that rotate, of a config without a scaling."""
    keys = json.loads(json.dumps(keys), object_hook=lambda one: {
        name: value for name, value in one.items() if not name.startswith("rope_")})
    config = make_config(model_type, keys)
    try:
        config = config.get_text_config()
        return max(len(one) for name, one in make_rotary(config).named_buffers()
                   if name.endswith("inv_freq"))
    except Exception:  # The config is not accepted, either.
        return 8


def find_path(config, inner):
    """The names of the members by which one config is in another one."""
    if config is inner:
        return []
    for name, value in vars(config).items():
        if isinstance(value, transformers.PretrainedConfig):
            path = find_path(value, inner)
            if path is not None:
                return [name, *path]
    return None


def draw_config(rng, model_type):
    """Returns keys that the class of the type accepts, of which some may be left out."""
    default = make_config(model_type, {})
    text = default and default.get_text_config()
    path = find_path(default, text) if default else None
    if path is None:
        return None

    def nest(keys):
        if path:
            keys = {**keys, "model_type": text.model_type}
        for name in reversed(path):
            keys = {name: keys}
        return keys

    draw = Draw(rng, text.to_dict())
    keys = draw.draw(lambda given: count_pairs(model_type, nest(given)))
    for _ in range(12):
        if not keys or make_config(model_type, nest(keys)) is not None:
            break
        keys.pop(rng.choice(sorted(keys)))
    return nest(keys)


def call_rotary(rotary, positions, layer_type, is_double):
    """The tables of a rotation, [..., tokens, pairs]."""
    given = torch.from_numpy(positions if positions.ndim == 1 else positions[:, None])
    given = given[None] if positions.ndim == 1 else given
    try:
        if not is_double:
            return models.read_tables(models.call_rotary(type(rotary)(
                copy.deepcopy(rotary.config)), given, layer_type))
        torch.set_default_dtype(torch.float64)
        with Doubles():
            module = type(rotary)(copy.deepcopy(rotary.config))
            return models.read_tables(models.call_rotary(module, given, layer_type))
    except Exception as error:
        raise Skip(f"transformers: {type(error).__name__}: {error}") from None
    finally:
        torch.set_default_dtype(torch.float32)


def record_layers(config):
    """Returns the heads of each layer that has an attention, and whether it rotates."""
    model = models.make_model(config)
    module = sys.modules[type(model).__module__]
    calls, originals = [], {}
    for name, function in vars(module).copy().items():
        if re.match(r"apply_\w*rot\w*", name) and callable(function):
            originals[name] = function

            def record(*arguments, _function=function, **keywords):
                calls.append(_function)
                return _function(*arguments, **keywords)
            setattr(module, name, record)
    try:
        tables, result = models.Tables(model), {}
        for layer, attention in models.find_attentions(model):
            calls.clear()
            heads = models.record_attention(attention, tables, layer)
            # In some models, the caller decides which layers get tables.
            is_own = "if position_embeddings" not in inspect.getsource(type(attention))
            result[layer] = heads, bool(calls) if originals and is_own else None
        return result
    except Skip:
        raise
    except Exception as error:
        raise Skip(f"transformers: {type(error).__name__}: {error}") from None
    finally:
        for name, function in originals.items():
            setattr(module, name, function)


# ===----------------------------------------------------------------------===#
# Posenc
# ===----------------------------------------------------------------------===#

class Refused(Exception):
    pass


def emit(path, kernels, flags):
    """Returns the functions of a config as MLIR."""
    try:
        result = subprocess.run(
            [models.find_compiler(), path, "--emit=posenc", "-o", "-", f"--kernels={kernels}",
             *flags],
            capture_output=True, text=True, check=False,
            timeout=search_limits.COMPILER_SECONDS)
    except subprocess.TimeoutExpired:
        raise Wrong("the compiler does not end") from None
    if result.returncode not in (0, 1) or "internal error" in result.stderr:
        raise Wrong(f"exit code {result.returncode}: {result.stderr}")
    if result.returncode:
        raise Refused(re.search(r"error: (.*)", result.stderr)[1])
    return result.stdout, re.findall(r"warning: (.*)", result.stderr)


def find_functions(functions, layer, layer_type):
    """The functions of a layer: those that list it, or that are of its type or of all."""
    return [one for one in functions
            if (layer in one.layers if one.layers else one.suffix in ("", layer_type))]


def check_names(functions, types):
    """Raises Wrong if a function has the name of a type of layers and not its layers."""
    for function in functions:
        own = [layer for layer, one in enumerate(types) if one == function.suffix]
        if own and function.layers and not set(function.layers) <= set(own):
            raise Wrong(f"function of {function.suffix} is for layers {function.layers}")


def find_frequencies(first, text):
    """The frequencies that a function names, without aliases."""
    names = dict(re.findall(r"^(#\w+) = (.*)$", first, flags=re.M))
    found = set(re.findall(r"posenc\.sincos (#\w+)|_rotation = (#\w+)", text))
    result = set()
    for name in {one for pair in found for one in pair if one}:
        value = names.get(name, name)
        inner = re.search(r"frequencies = (#\w+)", value)
        result.add(names.get(inner[1], value) if inner else value)
    return result


# ===----------------------------------------------------------------------===#
# Comparison
# ===----------------------------------------------------------------------===#

def compare_tables(ours, theirs, angles, is_exact, where):
    """`angles` are those of the tables before their reduction, and tables are relative to
    their factor."""
    factor = max(1e-3, float(np.max(np.hypot(*theirs), initial=0)))
    bound = 2.0 ** -22 + angles * 2.0 ** -44 if is_exact else 2.0 ** -21 * (angles + 1)
    for name, got, expected in zip(("cos", "sin"), ours, theirs):
        if got.shape != expected.shape:
            raise Wrong(f"{where}: {name} is {got.shape}, expected {expected.shape}")
        error = np.abs(got - expected) / (factor * bound)
        if not np.all(error <= 1):
            at = np.unravel_index(np.argmax(np.nan_to_num(error, nan=np.inf)), error.shape)
            raise Wrong(f"{where}: {name}{[int(x) for x in at]} is {got[at]}, expected "
                        f"{expected[at]}, {error[at]:.3g} times the bound")


def draw_positions(rng, config):
    """Positions: few, and some of them large, around the lengths of the config."""
    text = json.dumps(config.to_dict())
    lengths = [int(x) for x in
               re.findall(r'"(?:original_)?max_position_embeddings": (\d+)', text)] or [64]
    length = rng.choice(lengths)
    last = rng.choice([3, 37, length - 1, length, length + 1, 3 * length, 1000000])
    last = max(0, min(last, 1000000))
    return np.array(sorted({0, 1, last // 2, last // 3, last}), np.int64)


def check_tables(first, functions, config, rotary, positions, precision):
    """Compares the tables of each function with those of its layers."""
    if not functions:
        raise Wrong("there is no function sincos")
    text = first + "".join(one.text for one in functions) + "\n}\n"
    kernels = posenc.compile(text, opt_level=0, no_warnings=True)
    types = getattr(config, "layer_types", None) or []
    for function in functions:
        name = re.search(r"@(\w+)", function.text)[1]
        axes = re.search(r"\(%arg0: tensor<(?:([13])x)?\?xi64>", function.text)
        if not axes:
            raise Skip("positions are those of the patches of an image")
        axes = int(axes[1] or 1)
        given = positions if axes == 1 else np.stack([positions] * axes)
        ours = [np.asarray(table, np.float64) for table in getattr(kernels, name)(given)]
        layers = function.layers or [
            layer for layer, one in enumerate(types) if one == function.suffix]
        if not layers and function.suffix.endswith("_attention"):
            continue  # The config has parameters of a type that no layer has.
        layers = layers or [0]
        used = {types[layer] if layer < len(types) else None for layer in layers}
        for layer_type in sorted(used, key=str):
            where = f"{name} of layer type {layer_type} at {positions.tolist()}"
            theirs = call_rotary(rotary, given, layer_type, precision == "exact")
            if theirs[0].ndim == 3:  # The function that rotates selects the axes.
                theirs = [one[0] for one in theirs]
            # The largest frequency of each pair is not above 1, but for yarn's factors.
            angles = np.broadcast_to(positions[:, None].astype(float), ours[0].shape)
            compare_tables(ours, theirs, angles, precision == "exact", where)


def check_layers(first, sincos, attention, config):
    """Compares the attention of each layer."""
    recorded = record_layers(config)
    types = getattr(config, "layer_types", None) or []
    for layer, (theirs, rotates) in recorded.items():
        layer_type = types[layer] if layer < len(types) else None
        found = find_functions(attention, layer, layer_type)
        if len(found) != 1:
            raise Wrong(f"layer {layer} has functions {[one.suffix for one in found]}")
        ours = models.read_heads(found[0])
        given = vars(ours).copy()
        if theirs.window == models.UNKNOWN:
            given["window"] = models.UNKNOWN
        if given != vars(theirs):
            raise Wrong(f"layer {layer}: attention is {ours}, expected {theirs}")
        mine = find_frequencies(first, found[0].text)
        if rotates is not None and bool(mine) != rotates:
            raise Wrong(f"layer {layer} {'rotates' if mine else 'does not rotate'}")
        tables = find_functions(sincos, layer, layer_type)
        if mine and (len(tables) != 1 or mine != find_frequencies(first, tables[0].text)):
            raise Wrong(f"layer {layer} rotates by {sorted(mine)}, and has tables "
                        f"{[one.suffix for one in tables]}")
    return len(recorded)


class Search:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.fault = FAULTS[options.fault] if options.fault else None
        self.compared = collections.Counter()

    def write(self, model_type, keys, config, is_saved):
        members = config.to_dict() if is_saved else {
            "model_type": model_type, **models.COMPLETED.get(model_type, {}), **keys}
        members = json.loads(json.dumps(members))
        if self.fault:
            self.fault(members)
        path = self.folder / "config.json"
        path.write_text(json.dumps(members))
        return path

    def check(self, model_type, keys, seed):
        """Raises Wrong, Refused or Skip. A difference is refused if there is a warning."""
        rng = random.Random(seed)
        whole = make_config(model_type, keys)
        if whole is None:
            raise Skip("transformers does not accept the config")
        config = whole.get_text_config()
        members = config.to_dict()
        heads, key_heads = (members.get(name) for name in
                            ("num_attention_heads", "num_key_value_heads"))
        if isinstance(heads, int) and isinstance(key_heads, int) and (
                key_heads == 0 or heads % key_heads):
            raise Skip("key heads do not divide query heads")
        path = self.write(model_type, keys, whole, rng.random() < 0.5)
        flags = []
        positions = draw_positions(rng, config)
        if self.options.precision == "hf_f32":
            flags = ["--precision=hf_f32", f"--rope-length={positions[-1] + 1}"]
        rotary = make_rotary(config)
        # Without `layer_types`, `attention` is that of the config's window alone.
        types = sorted(set(getattr(config, "layer_types", None) or []))
        by_type = ",".join(["sincos", *(f"attention_{one}" for one in types)])
        choices = ["sincos,attention", "sincos"]
        for kernels in [by_type] * (len(types) > 1) + choices:
            try:
                module, warned = emit(path, kernels, flags)
                break
            except Refused as error:
                if kernels == "sincos" or "no function 'attention" not in str(error):
                    raise
        try:
            self.compare(module, config, rotary, positions)
        except Wrong as error:
            if warned:
                raise Refused(f"warning: {warned[0]} ({error})") from None
            raise

    def compare(self, module, config, rotary, positions):
        precision, notes = self.options.precision, []
        first, sincos = models.split_functions(module, "sincos")
        _, attention = models.split_functions(module, "attention")
        types = getattr(config, "layer_types", None) or []
        if types == config.to_dict().get("layer_types"):  # Dory saves others.
            check_names(sincos + attention, types)
        try:
            if config.model_type in OTHER_TABLES:
                raise Skip("the tables are not those of the attention")
            check_tables(first, sincos, config, rotary, positions, precision)
            self.compared["tables"] += len(sincos)
        except Skip as error:
            notes.append(str(error))
        if attention:
            try:
                self.compared["layers"] += check_layers(first, sincos, attention, config)
            except Skip as error:
                notes.append(str(error))
        if len(notes) == 2 or notes and not attention:
            raise Skip("; ".join(notes))

    def shrink(self, model_type, keys, seed):
        """Makes the keys simpler as long as the config is wrong."""
        changed, tries = True, 0
        while changed:
            changed = False
            for simpler in simplify(keys):
                tries += 1
                if tries > 200:
                    return keys
                try:
                    self.check(model_type, simpler, seed)
                except Wrong:
                    keys, changed = simpler, True
                    break
                except Exception:
                    continue
        return keys


# ===----------------------------------------------------------------------===#
# Faults
# ===----------------------------------------------------------------------===#

def walk(members):
    """The dictionaries of a config."""
    yield members
    for value in members.values():
        if isinstance(value, dict):
            yield from walk(value)


def change(*names, by):
    """A fault that changes the values of some keys, wherever they are."""
    def apply(members):
        for dictionary in walk(members):
            for name in names:
                if isinstance(dictionary.get(name), (int, float)) and \
                        not isinstance(dictionary[name], bool):
                    dictionary[name] = by(dictionary[name])
    return apply


def drop(*names):
    def apply(members):
        for dictionary in walk(members):
            for name in names:
                dictionary.pop(name, None)
    return apply


def swap_kinds(members):
    table = {"full_attention": "sliding_attention", "sliding_attention": "full_attention"}
    members["layer_types"] = [table.get(x, x) for x in members.get("layer_types") or []]


FAULTS = {
    "factor": change("factor", by=lambda x: x * 1.001),
    "theta": change("rope_theta", by=lambda x: x * 1.00001),
    "no-theta": drop("rope_theta"),
    "window": change("sliding_window", by=lambda x: x + 1),
    "part": change("partial_rotary_factor", by=lambda x: 0.5 if x != 0.5 else 0.25),
    "layer-types": swap_kinds,
    "beta": change("beta_fast", "low_freq_factor", by=lambda x: x * 1.1),
    "length": change("original_max_position_embeddings", by=lambda x: 2 * x),
    "key-heads": change("num_key_value_heads", by=lambda x: x + 1 if x == 1 else 1),
}


def run_one(search, options, types, number):
    """Returns the kind of the outcome and its text."""
    rng = random.Random(f"{options.seed} {number}")
    model_type = rng.choice(types)
    keys = draw_config(rng, model_type)
    if keys is None:
        return "not comparable", f"{model_type}: no config"
    seed = f"{options.seed} {number}"
    try:
        with search_limits.end_search():
            search.check(model_type, keys, seed)
    except Skip as error:
        return "not comparable", f"{model_type}: {error}"
    except Refused as error:
        return "refused", f"{model_type}: {error} {json.dumps(keys)}"
    except Wrong as error:
        text = str(error)
        print(f"config {number}: wrong: {model_type}: {text}", flush=True)
        keys = search.shrink(model_type, keys, seed)
        try:
            search.check(model_type, keys, seed)
        except Exception as last:
            text = str(last)
        return "wrong", f"{model_type}: {text}\n    {json.dumps(keys)}\n    written as " + (
            search.folder / "config.json").read_text()[:400]
    return "right", ""


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--only", type=int, help="the number of one config")
    parser.add_argument("--types", help="model types (default: all)")
    parser.add_argument("--precision", default="exact", choices=["exact", "hf_f32"])
    parser.add_argument("--fault", choices=sorted(FAULTS))
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    os.environ.setdefault("POSENC_CACHE", "off")
    torch.set_num_threads(1)
    types = options.types.split(",") if options.types else models.list_known_types()
    counts = collections.Counter()
    numbers = range(options.count) if options.only is None else [options.only]
    with tempfile.TemporaryDirectory() as folder:
        search = Search(options, pathlib.Path(folder))
        for number in numbers:
            kind, text = run_one(search, options, types, number)
            counts[kind] += 1
            if kind == "wrong" or options.verbose and kind != "right":
                print(f"config {number}: {kind}: {text}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) + "; " +
          ", ".join(f"{count} {name}" for name, count in sorted(search.compared.items())))
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
