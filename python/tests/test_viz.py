# ===- test_viz.py - the page of a model's rotary encoding ------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

import json
import os
import pathlib
import re
import subprocess
import sys
import warnings
import xml.etree.ElementTree

import numpy as np
import pytest

import posenc
from posenc import _page, viz
from posenc._contexts import DEFAULTS, read_context

CONFIG = {"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4,
          "num_key_value_heads": 2, "max_position_embeddings": 8192, "rope_theta": 10000.0}
FREQUENCIES = 10000.0 ** (-np.arange(32) / 32)


def test_pictures_need_matplotlib(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG))
    assert viz.main([str(config), "-o", str(tmp_path / "out.html")]) == 1
    assert "pictures need matplotlib" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [config]


def test_pictures(tmp_path):
    pytest.importorskip("matplotlib")
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG))
    for kind, start in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
        output = tmp_path / f"out.{kind}"
        assert viz.main([str(config), "-o", str(output)]) == 0
        assert output.read_bytes().startswith(start)


def test_numbers_are_those_of_the_formula():
    one, = viz.measure(CONFIG)
    assert (one.name, one.context) == ("llama", 8192)
    np.testing.assert_allclose(one.wavelengths, 2 * np.pi / FREQUENCIES, rtol=1e-6)
    np.testing.assert_allclose(one.near, np.cos(np.outer(FREQUENCIES, np.arange(256))),
                               atol=1e-6)
    np.testing.assert_allclose(
        one.scores, np.cos(np.outer(one.distances, FREQUENCIES)).mean(1), atol=1e-6)
    assert one.far_positions[-1] == 8191
    # A table of f32 is right to half a unit; angles of f32 lose bits with the position.
    assert one.errors.max() < 1e-7
    assert .01 < one.usual_errors.max() < .2
    angle = (np.float32(one.error_positions[-1]) * FREQUENCIES.astype(np.float32))
    exact = one.error_positions[-1] * FREQUENCIES
    np.testing.assert_allclose(
        one.usual_errors[:, -1],
        np.maximum(abs(np.cos(angle.astype(float)) - np.cos(exact)),
                   abs(np.sin(angle.astype(float)) - np.sin(exact))), atol=.01)


@pytest.mark.parametrize("changes", [
    {"rope_scaling": {"rope_type": "yarn", "factor": 4.0,
                      "original_max_position_embeddings": 2048}},
    {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}},
    {"partial_rotary_factor": 0.5, "model_type": "stablelm"},
    {"model_type": "qwen2_vl", "rope_scaling": {"type": "default",
                                                "mrope_section": [8, 12, 12]}},
    {"model_type": "cohere", "logit_scale": 1.0},
], ids=["yarn", "dynamic", "partial", "axes", "interleaved"])
def test_forms(changes):
    one, = viz.measure({**CONFIG, **changes})
    assert one.errors.max() < 2e-7
    assert np.isfinite(one.scores).all() and one.scores[0] == 1


def test_layer_types_are_rotations_of_their_own():
    rotations = viz.measure({
        "model_type": "gemma3_text", "hidden_size": 512, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 128, "num_hidden_layers": 6,
        "max_position_embeddings": 4096, "sliding_window": 512})
    assert len(rotations) == 2
    assert rotations[0].wavelengths[-1] != rotations[1].wavelengths[-1]


def test_page_is_one_file(tmp_path):
    pytest.importorskip("matplotlib")
    paths = []
    for theta in (1e4, 5e5):
        path = tmp_path / f"theta<{theta:.0f}>.json"
        path.write_text(json.dumps({**CONFIG, "rope_theta": theta}))
        paths.append(str(path))
    output = tmp_path / "out.html"
    done = subprocess.run([sys.executable, "-m", "posenc.viz", *paths, "-o", str(output)],
                          capture_output=True, text=True, check=True)
    assert done.stderr == f"{output}: 2 rotations\n"
    text = output.read_text(encoding="utf-8")
    text = re.sub(r'xmlns(:\w+)?="[^"]*"', "", text)
    assert not re.search(r"<script|src=|url\((?!#)|href=\"(?!#|data:)", text)
    assert text.count("data:image/png;base64,") == 8
    assert "theta&lt;10000&gt;" in text and "theta<" not in text
    [svg] = re.findall(r"<svg.*?</svg>", output.read_text(encoding="utf-8"), re.DOTALL)
    xml.etree.ElementTree.fromstring(svg)


@pytest.mark.parametrize("source, message", [
    ("no.json", "cannot read 'no.json'"), ("{", "'config.json' is not JSON"),
    ("[" * 9, "cannot read"),
    ({"model_type": "t5", "num_heads": 4, "d_kv": 64}, "'t5' has no rotary embedding"),
    ({**CONFIG, "rope_theta": -1}, "rope_theta"),
    ({"model_type": "dinov3_vit", "hidden_size": 384, "num_attention_heads": 6,
      "rope_theta": 100.0, "image_size": 224, "patch_size": 16},
     "its positions are coordinates"),
])
def test_errors(source, message):
    with pytest.raises(posenc.Error, match=message):
        viz.measure(source)


def test_a_page_is_written_whole(tmp_path, monkeypatch, capfd):
    pytest.importorskip("matplotlib")
    config, output = tmp_path / "config.json", tmp_path / "out.html"
    config.write_text(json.dumps(CONFIG))
    output.write_text("before")

    def fail(*arguments):
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", fail)
        assert viz.main([str(config), "-o", str(output)]) == 1
    assert "no space left" in capfd.readouterr().err
    assert output.read_text() == "before"
    assert sorted(tmp_path.iterdir()) == [config, output]
    output.chmod(0o600)
    assert viz.main([str(config), "-o", str(output)]) == 0
    assert output.stat().st_mode & 0o777 == 0o600
    odd = os.fsdecode(bytes(tmp_path) + b"/\xff.json")
    pathlib.Path(odd).write_text("\ufeff" + json.dumps(CONFIG), encoding="utf-8")
    assert viz.main([odd, "-o", str(tmp_path / "odd.HTML")]) == 0
    assert len(list(tmp_path.iterdir())) == 4
    assert viz.main([str(config), "-o", "/dev/null"]) == 0
    assert not os.path.isfile("/dev/null")
    with pytest.raises(SystemExit) as caught:
        viz.main([str(config), "-o", "page.txt"])
    assert caught.value.code == 2
    assert "expected 'page.txt' to end in .html" in capfd.readouterr().err


def test_contexts_of_configs_without_a_length():
    """They are those of the model type, which transformers leaves out."""
    pytest.importorskip("matplotlib")
    config = {key: value for key, value in CONFIG.items()
              if key != "max_position_embeddings"}
    one, = viz.measure({**config, "model_type": "mistral"})
    assert one.context == 131072 and one.far_positions[-1] == 131071
    assert b"context 131,072" in _page.make_picture([one], "svg")
    assert read_context({"model_type": "mistral3", "text_config": {
        "model_type": "qwen3_vl_text"}}) == 128000
    assert read_context({"model_type": "unheard_of"}) is None
    assert read_context({"model_type": "llama", "n_positions": 77}) == 77


def test_default_contexts_are_those_of_transformers():
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    seen = 0
    for name in set(DEFAULTS) & set(CONFIG_MAPPING.keys()):
        config = CONFIG_MAPPING[name]()
        parts = [config, getattr(config, "text_config", None)]
        lengths = [getattr(part, key, None) for part in parts
                   for key in ("max_position_embeddings", "n_positions")]
        assert DEFAULTS[name] == next(filter(None, lengths)), name
        seen += 1
    assert seen > 100


@pytest.mark.parametrize("length", [1, 2, 3])
def test_short_contexts(length):
    pytest.importorskip("matplotlib")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rotations = viz.measure({**CONFIG, "max_position_embeddings": length})
        page = _page.make_picture(rotations, "html").decode()
    assert f"context {length}" in page
    assert "nan" not in re.sub(r"base64,[^\"]*", "", page)


def test_paths(tmp_path, capsys):
    """A config is found by its folder, and errors name the file."""
    pytest.importorskip("matplotlib")
    folder = tmp_path / "llama-3"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    output = tmp_path / "out.html"
    assert viz.main([str(folder), "-o", str(output)]) == 0
    assert capsys.readouterr().err == f"{output}: 1 rotation\n"
    assert "Rotary encoding of llama-3<" in output.read_text(encoding="utf-8")
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps({**CONFIG, "rope_theta": -1}))
    assert viz.main([str(folder), str(bad), "-o", str(output)]) == 1
    assert f"error: {bad}: config.json:1:" in capsys.readouterr().err
    missing = tmp_path / "no" / "out.html"
    assert viz.main([str(folder), "-o", str(missing)]) == 1
    assert capsys.readouterr().err == (
        f"posenc.viz: error: cannot write '{missing}': No such file or directory\n")


def test_errors_of_the_command(tmp_path, capsys):
    path = tmp_path / "bad.json"
    path.write_text("[1")
    assert viz.main([str(path)]) == 1
    assert "is not JSON" in capsys.readouterr().err
