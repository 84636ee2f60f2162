# ===- test_model_types.py - default configs against transformers -----------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""For each supported model type that transformers has: the default config, as saved, is
compiled; its tables are those of the model's own rotation, its pairs those of the model,
and the heads of its attention those of each layer of the model."""

import dataclasses
import functools
import json
import pathlib
import re
import tempfile

import numpy as np
import pytest

import posenc

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import model_types as models  # noqa: E402  (needs torch and transformers)

pytestmark = [
    pytest.mark.skipif(not models.find_compiler(), reason="POSENC_BIN does not name the "
                       "folder of posenc-compile"),
    pytest.mark.skipif(not transformers.__version__.startswith("5.24."),
                       reason="the default configs are those of transformers 5.24"),
]
TYPES = models.list_known_types() if models.find_compiler() else []
# Runs all tests of a type one after the other, in one process of pytest-xdist: a model is
# made once.
FOR_EACH_TYPE = pytest.mark.parametrize("model_type", TYPES, scope="module")

# Small positions, where the rounding of transformers' f32 is small, and a larger one.
POSITIONS = np.array([[1, 0, 2, 7, 31, 997], [1, 5, 0, 3, 12, 500], [1, 2, 9, 0, 30, 77]])
SMALL = slice(0, 5)
# Rounding of an f32 angle, relative to the angle, and of cos and sin.
EPSILON = 2.0 ** -21


@functools.cache
def compile_tables(module: str):
    return posenc.compile(module, opt_level=0, no_warnings=True)


def compute_tables(first: str, function: models.Function, positions: np.ndarray):
    """Returns cos and sin of a function, [tokens, pairs] in f64."""
    text = re.sub(r"@sincos\w*", "@sincos", function.text)
    tables = compile_tables(first + text + "\n}\n").sincos(positions)
    return tuple(np.asarray(table, np.float64) for table in tables)


def count_axes(function: models.Function) -> int:
    found = re.search(r"\(%arg0: tensor<(?:([13])x)?\?xi64>", function.text)
    if not found:
        raise models.NotComparable("positions are those of the patches of an image")
    return int(found[1] or 1)


def rotate(x, cos, sin, is_interleaved: bool):
    """Rotates the pairs of [batch, heads, tokens, channels]."""
    pairs = cos.shape[-1]
    a, b = (x[..., ::2], x[..., 1::2]) if is_interleaved else (x[..., :pairs],
                                                               x[..., pairs:])
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def check_tables(actual, expected, angles, factor):
    """`angles` are those of the tables before their reduction."""
    bound = factor * EPSILON * (angles + 1)
    for name, ours, theirs in zip(("cos", "sin"), actual, expected):
        assert ours.shape == theirs.shape, f"{name}: {ours.shape} {theirs.shape}"
        worst = np.max(np.abs(ours - theirs) / bound)
        assert worst <= 1, f"{name}: {worst:.1f} times the bound"


def check_rotation(model, rotary, module: str, function: models.Function, pairing: str):
    """Compares a function `sincos` with the rotation of the model, and the pairs of
    channels. Returns whether the pairs were compared."""
    config, (first, _) = model.config, models.split_functions(module, "sincos")
    axes = count_axes(function)
    positions = POSITIONS[0] if axes == 1 else POSITIONS
    ours = compute_tables(first, function, positions)
    ones = compute_tables(first, function, np.ones_like(positions[..., :1]))
    frequencies = np.abs(np.arctan2(ones[1], ones[0]))
    factor = np.max(np.hypot(*ones))

    given = torch.from_numpy(positions if axes == 1 else positions[:, None])
    given = given[None] if axes == 1 else given
    layer_type = models.find_layer_type(config, function)
    result = models.call_rotary(rotary, given, layer_type)
    theirs = models.read_tables(result)
    if theirs[0].ndim == 3:  # The function that rotates selects the axes.
        same = np.broadcast_to(positions[:1], positions.shape)
        check_tables(compute_tables(first, function, same), [one[0] for one in theirs],
                     positions[0][:, None] * frequencies, factor)
    else:
        largest = np.max(positions.reshape(-1, positions.shape[-1]), axis=0)
        check_tables(ours, theirs, largest[:, None] * frequencies, factor)

    apply = models.find_apply(model, config)
    if apply is None:
        return False
    random = np.random.default_rng(1)
    q, k = (random.standard_normal((1, heads, positions.shape[-1], 2 * ours[0].shape[-1]))
            for heads in (2, 1))
    rotated = models.rotate_by_model(apply, result, config, torch.from_numpy(q),
                                     torch.from_numpy(k))
    # Some models change the order of channels as well, which scores do not show.
    scores = [np.einsum("bhic,bgjc->bhij", *(np.asarray(x.detach())[:, :, SMALL]
                                             for x in rotated))]
    scores.append(np.einsum("bhic,bgjc->bhij", *(
        rotate(x, *ours, pairing == "interleaved")[:, :, SMALL] for x in (q, k))))
    assert np.max(np.abs(scores[0] - scores[1])) < 1e-3 * factor ** 2, (
        f"{pairing} pairs are not those of {apply.__name__}")
    return True


def check_rotations(model, module: str, rope: str) -> bool:
    """Compares the functions `sincos` of a config with its model. Returns whether the
    pairs were compared."""
    rotary = models.make_rotary(model)
    _, functions = models.split_functions(module, "sincos")
    assert functions
    _, ropes = models.split_functions(rope, "rope")
    is_interleaved = any(re.search(r"posenc\.rope\b.* interleaved\b", one.text)
                         for one in ropes)
    pairing = "interleaved" if is_interleaved else "half"
    checked = [check_rotation(model, rotary, module, function, pairing)
               for function in functions]
    return all(checked)


def check_attention(model, module: str):
    """Compares the functions `attention` of a config with each layer of its model."""
    _, functions = models.split_functions(module, "attention")
    assert functions
    attentions = models.find_attentions(model)
    if not attentions:
        raise models.NotComparable("the model has no attention by layer")
    tables = models.Tables(model)
    for layer, attention in attentions:
        actual = [one for one in functions if one.is_for(layer)]
        assert len(actual) == 1, (
            f"layer {layer} has functions {[one.suffix for one in actual]}")
        ours = models.read_heads(actual[0])
        theirs = models.record_attention(attention, tables, layer)
        if theirs.window == models.UNKNOWN:
            ours = dataclasses.replace(ours, window=models.UNKNOWN)
        assert ours == theirs, f"layer {layer}"


def list_reasons(types: dict[str, str]) -> dict[str, str]:
    """Returns the reason of each type from the types of each reason."""
    return {name: reason for reason, names in types.items() for name in names.split()}


# Why types are not compared: the beginning of an error.
NO_MODEL = {
    "transformers has no model of this config":
        "eomt_dinov3 exaone internlm3 iquestcoder sarvam_mla sarvam_moe t5_gemma_module",
    "transformers cannot make the model of its default config":
        "chameleon dbrx deepseek_ocr2_text diffusion_gemma diffusion_gemma_text "
        "moonshine_streaming pe_audio_video_encoder pe_video_encoder t5gemma2_text",
    "the model has several modules of rotations": "evolla",
    "the module of the rotation has no config": "codegen gptj",
}
NO_ROTATION = list_reasons({
    **NO_MODEL,
    "'model_type'": "bloom mpt mt5 switch_transformers t5 umt5",  # They have biases.
    "the model has no module of the rotation": "roformer",
    "positions are those of the patches of an image": "dinov3_vit pixtral sapiens2",
    # Defaults that no model has.
    "the sum of 'mrope_section'": "qwen3_omni_moe_talker_text qwen4_exp_text",
    "'rope_parameters' must not be empty": "cohere_compass_text",
})
NO_ATTENTION = list_reasons({
    **NO_MODEL,
    "transformers cannot make the model":
        "cohere_compass_text qwen3_omni_moe_talker_text qwen4_exp_text",
    "no function 'attention'":
        "axk2 beam deepseek_ocr2_encoder deepseek_v32 diffllama doge dory "
        "dots3_note_audio_encoder dots3_note_text embedding_gemma2 "
        "embedding_gemma2_text glm_moe_dsa hrm_text hunyuan_v1_dense hunyuan_v1_moe "
        "hy_v4 hy_v4_vl_text jetmoe kyutai_speech_to_text longcat_flash mimo_v2_flash "
        "minimax_m3_vl_text muse_glimmer_assistant nemotron3_5_transcribe_asr_audio "
        "nemotron3_5_transcribe_word_timestamp nemotron3_diarization_audio "
        "openai_privacy_filter timesfm2_5 ultrabert unlimited_ocr_text zaya",
    "the model has no module of the rotation":
        "bloom mpt mt5 roformer switch_transformers t5 umt5",
    "the rotation takes no positions": "dinov3_vit sapiens2",
    "the attention has no config": "esm gpt_neox_japanese",
    "the attention cannot be called alone": "falcon",
})
NO_FACTOR = list_reasons({
    **NO_MODEL,
    "transformers cannot make the model":
        "cohere_compass_text qwen3_omni_moe_talker_text qwen4_exp_text",
    "the model has no module of the rotation":
        "bloom mpt mt5 roformer switch_transformers t5 umt5",
    "the config has no parameters of a rotation": "dinov3_vit esm sapiens2",
    "the rotation has no default type": "pixtral",
})
# Types of which the pairs are not compared: transformers has no function of that.
UNPAIRED: set[str] = set()


# ===----------------------------------------------------------------------===#
# Default configs
# ===----------------------------------------------------------------------===#

FAMILIES = ("sincos", "rope", "attention")


# Models are large, and the tests of one type follow each other.
@functools.lru_cache(maxsize=2)
def make_model(model_type: str):
    return models.make_model(models.make_config(model_type).get_text_config())


@functools.lru_cache(maxsize=2)
def emit_default(model_type: str) -> dict[str, str | models.NotComparable]:
    """Returns the module with each family of functions for the default config of a type as
    transformers saves it, or why there is none. The compiler's start is most of its time,
    so one process emits all families, if the config has them all."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, f"{model_type}.json")
        models.make_config(model_type).to_json_file(path)
        try:
            return dict.fromkeys(FAMILIES, models.emit(path, ",".join(FAMILIES)))
        except models.NotComparable:
            pass
        modules: dict[str, str | models.NotComparable] = {}
        for families in (("sincos", "rope"), ("attention",)):
            try:
                module = models.emit(path, ",".join(families))
            except models.NotComparable as error:
                module = error
            modules.update(dict.fromkeys(families, module))
        return modules


def emit(model_type: str, family: str) -> str:
    """Returns a module with the functions of a family for a default config."""
    module = emit_default(model_type)[family]
    if isinstance(module, models.NotComparable):
        raise models.NotComparable(str(module))
    return module


def compare(check, model_type: str, reasons: dict[str, str]):
    """Runs a comparison. It must not be possible for the types with a reason, and must be
    possible for the others."""
    try:
        check()
    except models.NotComparable as error:
        assert model_type in reasons, str(error)
        assert str(error).startswith(reasons[model_type])
    else:
        assert model_type not in reasons, "remove it from the list"


@FOR_EACH_TYPE
def test_rotation(model_type):
    def check():
        module, rope = (emit(model_type, family) for family in ("sincos", "rope"))
        is_paired = check_rotations(make_model(model_type), module, rope)
        assert is_paired == (model_type not in UNPAIRED)

    compare(check, model_type, NO_ROTATION)


@pytest.fixture(name="factor_types", scope="module")
def fixture_factor_types():
    return models.list_types_of_key("partial_rotary_factor")


@FOR_EACH_TYPE
def test_partial_factor(model_type, factor_types):
    """Types whose own code rotates whole heads have a warning for the factor. The channels
    of latent heads that rotate have a key of their own."""
    def check():
        reads = models.reads_partial_factor(models.make_rotary(make_model(model_type)))
        if model_type not in factor_types["ignored"]:
            assert reads == (model_type in factor_types["read"])

    compare(check, model_type, NO_FACTOR)


@pytest.fixture(name="readings", scope="module")
def fixture_readings():
    return models.list_readings()


@FOR_EACH_TYPE
def test_read_keys(model_type, readings):
    """A key that the code of a type does not read has a warning."""
    try:
        rotary = models.make_rotary(make_model(model_type))
    except models.NotComparable as error:
        pytest.skip(str(error))
    own = models.CONFIG_MAPPING[model_type] is type(rotary.config)
    completed = models.COMPLETED.get(model_type, {}) if own else {}
    completed = {key: value for key, value in completed.items() if key != "rope_parameters"}
    wrong = {}
    for key in models.KEY_VALUES:
        try:
            reads = models.reads_key(rotary, key, completed)
        except models.NotComparable:
            continue
        # Only types that name the key have it, besides those for which it is refused.
        if key == "rotary_dim" and model_type not in ("minimax", "minimax_m2"):
            continue
        if reads != readings[key].is_for(model_type):
            wrong[key] = reads
    assert not wrong


# Attention rotates by the base of the layer, which the tables do not show; and without
# the default dictionary, the tables have the size of whole heads.
OTHER_TABLES = {"granite_swa", "granitemoe_swa", "mistral4"}


@FOR_EACH_TYPE
def test_changed_rotation(model_type, tmp_path):
    """A scaling has the effect that it has in the model, or a diagnostic."""
    if model_type in OTHER_TABLES:
        pytest.skip("the tables are not those of the attention")
    config = models.make_config(model_type).get_text_config()
    if models.CONFIG_MAPPING[model_type] is not type(config):
        pytest.skip("a nested config has a type of its own")
    try:
        rope = emit(model_type, "rope")
    except models.NotComparable as error:
        pytest.skip(str(error))
    compared, path = 0, tmp_path / f"{model_type}.json"
    for key in ("rope_scaling", "rope_parameters"):
        members = models.change_config(config, key)
        path.write_text(json.dumps(members))
        module = models.emit_read_keys(path, "sincos")
        if not module:
            continue
        try:
            changed = type(config)(**members)
        except Exception:  # Each type has its own.
            continue
        try:
            check_rotations(models.make_model(changed), module, rope)
        except (models.NotComparable, KeyError, ValueError):
            continue
        compared += 1
    if not compared:
        pytest.skip("no scaling is accepted here and there without a warning")


@FOR_EACH_TYPE
def test_attention(model_type):
    def check():
        check_attention(make_model(model_type), emit(model_type, "attention"))

    compare(check, model_type, NO_ATTENTION)


def test_numbers_of_types():
    """The lists of what is not compared grow only together with these numbers."""
    numbers = {"types": len(TYPES), "no rotation": len(NO_ROTATION),
               "no attention": len(NO_ATTENTION), "no factor": len(NO_FACTOR),
               "pairs": len(UNPAIRED)}
    assert numbers == {"types": 230, "no rotation": 32, "no attention": 65,
                       "no factor": 33, "pairs": 0}
    assert {*NO_ROTATION, *NO_ATTENTION, *NO_FACTOR, *UNPAIRED} <= set(TYPES)


# ===----------------------------------------------------------------------===#
# The comparisons find faults
# ===----------------------------------------------------------------------===#

@pytest.fixture(name="modules", scope="module")
def fixture_modules():
    """The model of Gemma 3, whose layers differ, and its functions."""
    return make_model("gemma3_text"), {family: emit("gemma3_text", family)
                                       for family in FAMILIES}


@pytest.mark.parametrize("kernels, pattern, fault, message", [
    ("sincos", r"base = 1\.000000e\+06", "base = 1.001000e+06", "times the bound"),
    ("sincos", r"base = 1\.000000e\+04", "base = 1.000000e+06", "times the bound"),
    ("sincos", r"dim = 256, base = (\S+)>",
     r"dim = 256, base = \1, scaling = #posenc.linear<factor = 1.01>>", "times the bound"),
    ("rope", r"posenc\.rope ", "posenc.rope interleaved ", "pairs are not those"),
    ("attention", r"x8x256xf32", "x4x256xf32", "layer 0"),
    ("attention", r"x4x256xf32", "x8x256xf32", "layer 0"),
    ("attention", r"window_left = 4095", "window_left = 4096", "layer 0"),
    ("attention", r"causal scale = 6\.25", "causal scale = 6.26", "layer 5"),
    ("attention", r"array<i64: 5, ", "array<i64: 4, ", "layer 4 has functions"),
])
def test_faults(modules, kernels, pattern, fault, message):
    model, texts = modules
    text, count = re.subn(pattern, fault, texts[kernels])
    assert count
    texts = {**texts, kernels: text}
    with pytest.raises(AssertionError, match=message):
        check_rotations(model, texts["sincos"], texts["rope"])
        check_attention(model, texts["attention"])


def test_no_fault(modules):
    model, texts = modules
    assert check_rotations(model, texts["sincos"], texts["rope"])
    check_attention(model, texts["attention"])
