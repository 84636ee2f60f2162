# ===- test_viz.py - the page of a model's rotary encoding ------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

import ast
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
    # The bounds are those of all distances up to the next one, but for a few.
    every = np.cos(np.outer(np.arange(8192), FREQUENCIES)).mean(1)
    parts = np.split(every, one.distances[1:])
    low, high = (np.array([choose(part) for part in parts]) for choose in (np.min, np.max))
    assert (one.low_scores >= low - 1e-6).all() and (one.high_scores <= high + 1e-6).all()
    assert abs(one.low_scores - low).max() < .1 and abs(one.high_scores - high).max() < .1
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
    # Eight maps with a key of colours each.
    assert text.count("data:image/png;base64,") == 16
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


# ===----------------------------------------------------------------------===#
# Figures
# ===----------------------------------------------------------------------===#


def read_map(figure, number=0):
    """Returns the elements of a map."""
    maps = [image for axis in figure.axes for image in axis.images]
    return np.ma.filled(np.ma.asarray(maps[number].get_array(), float), np.nan)


def check_figure(figure):
    """Each picture has a title, axes with names, and a key of its colours."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    assert isinstance(figure, Figure)
    FigureCanvasAgg(figure).draw()
    keys = [axis for axis in figure.axes if axis.get_label() == "<colorbar>"]
    pictures = [axis for axis in figure.axes if axis not in keys and axis.axison]
    for axis in pictures:
        assert axis.get_title() and axis.get_xlabel() and axis.get_ylabel()
    assert len(keys) + sum(axis.get_legend() is not None for axis in pictures) >= len(
        pictures)
    # Names are within the figure.
    for axis in pictures:
        for text in (axis.title, axis.xaxis.label, axis.yaxis.label):
            box = text.get_window_extent()
            assert box.x0 >= 0 and box.y0 >= 0, text.get_text()
            assert box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1, text.get_text()
    return figure


@pytest.fixture
def figures():
    pytest.importorskip("matplotlib")
    return viz


def test_whole_context_has_no_waves_shorter_than_its_columns(figures):
    figure = check_figure(figures.rotations(CONFIG))
    assert read_map(figure, 0).shape == (32, 256)
    context, step = read_map(figure, 1), 8191 / 255
    is_short = 2 * np.pi / FREQUENCIES < 6 * step
    assert np.isnan(context[is_short]).all() and not np.isnan(context[~is_short]).any()
    assert 0 < is_short.sum() < 32
    # Between columns, a pair that is shown turns by a sixth at most.
    assert np.abs(np.diff(context[~is_short], axis=1)).max() <= 2 * np.sin(np.pi / 6) + 1e-6


def test_tables(figures):
    table = read_map(check_figure(figures.sinusoidal(40, 64)))
    angles = np.outer(np.arange(40), FREQUENCIES)
    expected = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    np.testing.assert_allclose(table, expected, atol=1e-12)
    similar = read_map(check_figure(figures.similarity(40, 64)))
    np.testing.assert_allclose(similar, expected @ expected.T / 32, atol=1e-12)


def test_biases(figures):
    biases = read_map(check_figure(figures.alibi(8, 16)))
    slopes = 2.0 ** -np.arange(1, 9)
    np.testing.assert_allclose(biases, -np.outer(slopes, np.arange(17)), rtol=1e-12)
    figure = check_figure(figures.t5_buckets(32, 128, 130))
    encoder, decoder = (axis.lines[0].get_ydata() for axis in figure.axes)
    assert encoder[130] == 0 and encoder[131] == 17 and encoder[-1] == 31
    assert encoder[0] == 15 and list(decoder[[0, 129, 130, 200]]) == [31, 1, 0, 0]


def test_frequencies(figures):
    scaling = {"rope_type": "linear", "factor": 4.0}
    figure = check_figure(figures.frequencies({**CONFIG, "rope_scaling": scaling}))
    np.testing.assert_allclose(figure.axes[1].lines[0].get_ydata(), 4, rtol=1e-6)
    figure = check_figure(figures.frequencies({
        **CONFIG, "rope_parameters": {**scaling, "rope_theta": 10000.0}}))
    np.testing.assert_allclose(figure.axes[1].lines[0].get_ydata(), 4, rtol=1e-6)
    with pytest.raises(posenc.Error, match="'llama' has no scaling"):
        figures.frequencies(CONFIG)


def test_masks_and_scores(figures):
    q, k = np.ogrid[:20, :70]
    slopes = np.array([0.5, 0.25])

    def window(b, h, q, k):
        return (q - k < 5) & (k < 66)

    def decay(s, b, h, q, k):
        return s - slopes[h] * (q - k)

    seen = read_map(check_figure(figures.mask(window, 20, 70)))
    assert (seen == window(0, 0, q, k)).all()
    scores = read_map(check_figure(figures.score_mod(
        decay, 20, 70, mask_mod=window, head=1, score=2.0)))
    np.testing.assert_allclose(scores, np.where(
        window(0, 0, q, k), 2 - .25 * (q - k), np.nan), atol=1e-9)
    random = np.random.default_rng(0)
    query, key = (random.standard_normal((1, heads, tokens, 16))
                  for heads, tokens in ((2, 20), (1, 70)))
    scores = read_map(check_figure(figures.score_mod(decay, query, key, head=1)))
    np.testing.assert_allclose(
        scores, query[0, 1] @ key[0, 0].T / 4 - .25 * (q - k), atol=1e-9)


def test_functions_of_other_frameworks(figures):
    torch = pytest.importorskip("torch")
    document = torch.tensor([0, 0, 1, 1, 1])

    def same(b, h, q, k):
        return document[q] == document[k]

    seen = read_map(check_figure(figures.mask(same, 5, 5)))
    assert (seen == (document[:, None] == document).numpy()).all()


@pytest.mark.parametrize("call, message", [
    (lambda: viz.mask(3, 4, 4), "mask_mod is a int"),
    (lambda: viz.mask(lambda b, h, q, k: q >= k, 0, 4), "q is 0, expected an integer"),
    (lambda: viz.mask(lambda b, h, q, k: q >= k, np.ones((1, 2, 4, 8)),
                      np.ones((1, 2, 4, 8)), head=2), "head 2, but q has the shape"),
    (lambda: viz.score_mod(None, 4, 4), "score_mod is a NoneType"),
    (lambda: viz.sinusoidal(8, 7), "expected an even number"),
    (lambda: viz.alibi(0), "heads is 0, expected an integer from 1 to 128"),
    (lambda: viz.t5_buckets(31), "buckets"), (lambda: viz.rotations(), "at least one"),
])
def test_errors_of_figures(call, message):
    pytest.importorskip("matplotlib")
    with pytest.raises(posenc.Error, match=message):
        call()


def test_figures_need_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(posenc.Error, match="pictures need matplotlib"):
        viz.mask(lambda b, h, q, k: q >= k, 4, 4)


def test_notebook(figures):
    """Each cell of the example ends with a figure. The file has no outputs."""
    source = pathlib.Path(os.environ.get("POSENC_SOURCE",
                                         pathlib.Path(__file__).parents[2]))
    path = source / "examples" / "pictures.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4 and path.stat().st_size < 20000
    names, count = {}, 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == [] and cell["execution_count"] is None
        *body, last = ast.parse("".join(cell["source"])).body
        exec(compile(ast.Module(body, []), "<cell>", "exec"), names)
        check_figure(eval(compile(ast.Expression(last.value), "<cell>", "eval"), names))
        count += 1
    assert count == 7
