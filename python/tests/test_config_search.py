# ===- test_config_search.py - random configs of models --------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""benchmarks/config-search.py finds nothing in the compiler, and finds seeded faults."""

import os
import re

import benchmark_scripts
import pytest

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = [
    pytest.mark.skipif("POSENC_BIN" not in os.environ, reason="POSENC_BIN does not name the "
                       "folder of posenc-compile"),
    pytest.mark.skipif(not transformers.__version__.startswith("5.24."),
                       reason="the configs are those of transformers 5.24"),
]
# Faults, types that show them, and the number of a config that does.
FAULTS = {"theta": ("llama", 1), "factor": ("llama", 7), "beta": ("llama", 11),
          "length": ("llama", 7), "window": ("mistral", 0), "layer-types": ("gemma2", 6),
          "key-heads": ("llama", 0)}


@pytest.fixture(name="search", scope="module")
def fixture_search():
    with benchmark_scripts.load("config-search") as module:
        yield module


@pytest.mark.parametrize("precision", ["exact", "hf_f32"])
def test_nothing_is_wrong(search, precision, capfd):
    assert search.main(["--seed=3", "--count=5", f"--precision={precision}",
                        "--types=llama,mistral,gemma2,qwen3,gpt_oss"]) == 0
    out = capfd.readouterr().out
    assert int(re.search(r"(\d+) right", out)[1]) >= 2, out
    assert int(re.search(r"(\d+) layers", out)[1]) >= 4, out


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(search, fault, monkeypatch, capfd):
    # Shrinking a config takes most of the time.
    monkeypatch.setattr(search.Search, "shrink", lambda self, model_type, keys, seed: keys)
    model_type, number = FAULTS[fault]
    assert search.main(["--seed=3", f"--only={number}", f"--fault={fault}",
                        f"--types={model_type}"]) == 1
    assert f"config {number}: wrong" in capfd.readouterr().out


def test_wrong_configs_are_shortened(search, monkeypatch):
    """Only what the fault needs is left, with simple values."""
    def check(self, model_type, keys, seed):
        if keys.get("rope_parameters", {}).get("factor", 0) > 1:
            raise search.Wrong("the factor")

    monkeypatch.setattr(search.Search, "check", check)
    keys = {"hidden_size": 64, "layer_types": ["full_attention"] * 2,
            "rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 5e5}}
    assert object.__new__(search.Search).shrink("llama", keys, "1") == {
        "rope_parameters": {"factor": 2}}
