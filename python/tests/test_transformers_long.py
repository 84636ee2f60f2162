# ===- test_transformers_long.py - long prompts and large positions --------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The comparisons of compare-models.py, at sizes that take seconds."""

import importlib.util
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")


def load_script():
    path = Path(__file__).parents[1] / "benchmarks" / "compare-models.py"
    spec = importlib.util.spec_from_file_location("compare_models", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script = load_script()


@pytest.mark.parametrize("name, length", [("Llama", 8192), ("Gemma3", 4096)])
def test_long(name, length):
    """Logits of "sdpa". Gemma 3 has windows."""
    differences, own, other = script.compare_long(name, length)
    assert max(differences) < 2e-6
    assert own <= 2 * other < 0.2


# The others need kernels that take long to compile.
@pytest.mark.parametrize("name", ["Llama", "Qwen2", "Qwen3", "Mistral", "Phi3", "Gemma3"])
def test_exact(name):
    """The default precision is nearer to the model in f64 than others are."""
    errors = script.compare_exact(name, 32768, tokens=96)
    assert errors["exact"] < 1.5e-6
    # The rounding of angles shows at such positions.
    assert 2 * errors["exact"] < errors["eager"] < 1e-3
    assert errors["hf_f32"] < 1.1 * errors["eager"] + script.ROUNDING


def test_reference_by_parts():
    """Models without "sdpa" are compared with "eager", of parts of the tokens."""
    model = script.make_small_model("Gemma2", 600)
    tokens = torch.arange(600)[None] % 500 + 2
    assert not model._supports_sdpa
    expected = script.compute_logits(model, tokens)[0]
    actual = script.compute_reference(model, tokens, part=77)
    assert script.compute_difference(actual, expected) < 2e-6


def test_f64():
    """The model in f64 is another than that in f32, and deterministic."""
    def make():
        return script.make_small_model("Llama", 64)

    tokens = torch.arange(2, 50)[None]
    first, second = (script.compute_in_f64(make, tokens) for _ in range(2))
    assert first.dtype == torch.float64 and torch.equal(first, second)
    # Rotations are relative: other positions change nothing but rounding.
    moved = script.compute_in_f64(make, tokens,
                                  position_ids=torch.arange(48)[None] + 30000)
    assert script.compute_difference(moved, first) < 1e-11
