//===- FunctionDocs.cpp - documentation of the functions of a model -------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The comment in the C header for each function of a model. It says what the
// function computes and what its arguments hold.
//
//===----------------------------------------------------------------------===//

#include "ModelModule.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::posenc;
using llvm::formatv;
using ::posenc::frontend::AttentionConfig;

/// Returns the numbers of the layers of the functions with this suffix; empty
/// if they are unknown or all.
ArrayRef<int64_t> ModelModule::findLayers(StringRef suffix) {
  std::string whole = config.suffix + suffix.str();
  for (const ::posenc::frontend::NamedLayers &named : config.namedLayers)
    if ("_" + named.suffix == whole || (whole.empty() && named.suffix.empty()))
      return named.layers;
  return {};
}

/// Describes the layers that a function is for, or returns an empty string if
/// it is for all layers.
std::string ModelModule::describeLayers(StringRef ownSuffix) {
  std::string whole = config.suffix + ownSuffix.str();
  StringRef suffix = whole;
  suffix.consume_front("_");
  if (!suffix.empty() && config.attention &&
      config.attention->layers.front().isEncoder)
    return formatv(" For the self-attention of the {0}.", suffix);
  std::string numbers = ::posenc::frontend::spellLayers(findLayers(ownSuffix));
  bool isUnrotated = suffix.consume_back("nope");
  suffix.consume_back("_");
  if (suffix.empty() && !isUnrotated && numbers.empty())
    return "";
  std::string text = " For layers";
  if (!suffix.empty() && !suffix.starts_with("layer_"))
    text += " of type " + suffix.str();
  if (isUnrotated)
    text += " that do not rotate";
  if (numbers.empty())
    return text + ".";
  bool isOnlyNumbers = text == " For layers";
  return text + (isOnlyNumbers ? " " : ": ") + numbers + ".";
}

/// Describes the position axes, or returns an empty string for a single one.
std::string ModelModule::describeAxes() {
  if (!config.axes)
    return "";
  using Layout = ::posenc::frontend::PositionAxes::Layout;
  std::string sections;
  llvm::raw_string_ostream os(sections);
  llvm::interleaveComma(config.axes->sections, os);
  StringRef layout = "The pairs of the axes follow each other";
  if (config.axes->layout == Layout::Interleaved)
    layout = "The pairs of the axes alternate";
  else if (config.axes->layout == Layout::Alternating)
    layout = "The first pairs have the even frequencies and the row, the "
             "others the odd frequencies and the column";
  if (config.axes->areCoordinates())
    return " A token has two coordinates from -1 to 1, its row and its column, "
           "the first dimension of positions; (0, 0) does not rotate. The "
           "first half of the pairs rotates by the row, the second half by "
           "the column.";
  return formatv(" A token has a position on each of {0} axes, the first "
                 "dimension of positions. {1}: {2} pairs.",
                 config.axes->sections.size(), layout, sections);
}

/// Describes the channels of a head that rotate, and their pairing.
std::string ModelModule::describeRotation(FrequenciesAttr frequencies,
                                          int64_t headDim, int64_t offset) {
  int64_t dim = frequencies.getDim();
  std::string pairs =
      config.interleaved
          ? "channels 2i and 2i + 1 are a pair"
          : formatv("channels i and i + {0} are a pair", dim / 2).str();
  if (dim == headDim)
    return formatv("All channels of a head rotate; {0}.{1}", pairs,
                   describeAxes());
  std::string counted =
      offset == 0 ? "" : formatv(", i counted from {0}", offset).str();
  return formatv("Channels {0} to {1} of a head rotate, the others do not; "
                 "{2}{3}.{4}",
                 offset, offset + dim - 1, pairs, counted, describeAxes());
}

std::string ModelModule::describeSincos(FrequenciesAttr frequencies,
                                        StringRef suffix) {
  bool hasFactor = isa_and_nonnull<YarnScalingAttr, LongropeScalingAttr>(
      frequencies.getScaling());
  StringRef factor =
      hasFactor ? ", times the attention factor of the scaling" : "";
  return formatv(
      "Tables of the rotary embedding: row t has the cosines, and the "
      "sines, of the {0} angles at position {1}{2}.{3}{4}",
      frequencies.getNumPairs(),
      config.axes ? "positions[a][t], with a the axis of the angle"
                  : "positions[t]",
      factor, describeLayers(suffix), describeAxes());
}

std::string ModelModule::describeRope(FrequenciesAttr frequencies,
                                      StringRef suffix) {
  return formatv(
      "Rotates the queries q and the keys k of each token by its "
      "position. {0}{1}{2}",
      describeRotation(frequencies, config.headDim, config.rotaryOffset),
      describeLayers(suffix),
      config.mayNorm ? " If the model norms queries and keys, q and k "
                       "must be normed already."
                     : "");
}

std::string ModelModule::spell(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.9g", number);
  return text;
}

/// Describes the scale, the soft cap and the sinks of the scores.
std::string ModelModule::describeScores(const Layer &layer) {
  const AttentionConfig &attention = *config.attention;
  std::string scale = attention.scale
                          ? spell(*attention.scale)
                          : formatv("1/sqrt({0})", attention.headDim).str();
  std::string text = formatv("Scores are q . k times {0}", scale);
  if (attention.softCap)
    text += formatv(", then s becomes {0} tanh(s / {0})",
                    spell(*attention.softCap));
  text += "." + describeTemperature(layer) + describeBias(layer);
  if (attention.hasSinks)
    text += " sinks has one logit per head, which enters the softmax sum only.";
  return text;
}

/// Describes the norms of queries and keys, or who has to compute them.
std::string ModelModule::describeNorms(bool ofRawKeys) {
  const AttentionConfig &attention = *config.attention;
  if (!attention.norm)
    return config.mayNorm
               ? " If the model norms queries and keys, q and k must be normed "
                 "already; with --qk-norm this function norms them."
               : "";
  std::string plus = attention.norm->weightOffset != 0
                         ? formatv(" ({0} is added to them)",
                                   spell(attention.norm->weightOffset))
                               .str()
                         : "";
  return formatv(" {0} normed first, by the root mean square of {1} and the "
                 "checkpoint's weights{2}.",
                 ofRawKeys ? "Queries and keys are" : "Queries are",
                 attention.norm->allHeads ? "all heads of a token together"
                                          : "each head",
                 plus);
}

/// Describes the tokens that a token sees.
std::string ModelModule::describeVisible(const Layer &layer) {
  if (!isMasked(layer)) {
    if (layer.window)
      return formatv("tokens at most {0} before or after it",
                     *layer.window - 1);
    if (layer.chunk)
      return formatv("the tokens of its chunk (tokens 0 to {0} are the first "
                     "chunk)",
                     *layer.chunk - 1);
    return "all tokens of its sequence";
  }
  if (layer.window)
    return formatv("the last {0} tokens up to its own", *layer.window);
  if (layer.chunk)
    return formatv("the tokens of its chunk up to its own (tokens 0 to {0} are "
                   "the first chunk)",
                   *layer.chunk - 1);
  return "the tokens up to its own";
}

StringRef ModelModule::describeUnrotated() {
  return options.rotates ? "These layers do not rotate; positions are not read."
                         : "This function does not rotate.";
}

std::string ModelModule::describeHeadRotation(FrequenciesAttr frequencies) {
  return describeRotation(frequencies, config.attention->headDim,
                          config.attention->rotaryOffset);
}

std::string ModelModule::describeRotations(FrequenciesAttr frequencies,
                                           const Layer &layer) {
  if (!rotates(layer))
    return describeUnrotated().str();
  return "q and k are not rotated yet: this function rotates them by their "
         "positions. " +
         describeHeadRotation(frequencies);
}

StringRef ModelModule::describeCachedKeys() {
  return options.keyCache == KeyCache::Raw
             ? "keys as they were before their norm and rotation, which are "
               "done here for each call"
             : "rotated keys";
}

/// Describes the log-sum-exp, which is the last result.
std::string ModelModule::describeLogSumExp() {
  if (!options.logSumExp)
    return "";
  StringRef sinks = config.attention->hasSinks
                        ? ", the sink of its head included; for a token "
                          "without a visible key it is the sink"
                        : "; for a token without a visible key it is minus "
                          "infinity";
  return formatv("\nlse is the natural logarithm of the sum of exp(score) of "
                 "each query token and head{0}.",
                 sinks);
}

std::string ModelModule::describeAttention(FrequenciesAttr frequencies,
                                           const Layer &layer,
                                           StringRef suffix) {
  return formatv(
      "Attention of whole sequences (prefill): o = softmax(scores) v. "
      "Each token sees {0}, in the order of the tensors.{1}\n{2}\n{3}"
      "{4}{5}",
      describeVisible(layer), describeLayers(suffix),
      describeRotations(frequencies, layer), describeScores(layer),
      describeNorms(/*ofRawKeys=*/true), describeLogSumExp());
}

/// Describes the scales of quantized caches.
std::string ModelModule::describeCaches() {
  if (!isQuantized())
    return "";
  if (hasGivenScales())
    return "\nThe caches are quantized: a key is k_cache times k_scales, a "
           "value v_cache times v_scales.";
  return "\nThe caches are quantized: a key is k_cache times the scale of its "
         "row in k_scales, a value v_cache times that in v_scales.";
}

std::string ModelModule::describeDecode(FrequenciesAttr frequencies,
                                        const Layer &layer, StringRef suffix) {
  int64_t tokens = options.decodeTokens;
  bool isRaw = options.keyCache == KeyCache::Raw;
  std::string subject =
      tokens == 1
          ? "the newest token of each sequence to its cache: o = "
            "softmax(scores) v"
          : formatv("the {0} newest tokens of each sequence to its cache: o = "
                    "softmax(scores) v{1}",
                    tokens,
                    isMasked(layer) ? "; each sees no later token than itself"
                                    : "")
                .str();
  std::string window = layer.window || layer.chunk
                           ? " A token sees " + describeVisible(layer) + "."
                           : "";
  std::string positions =
      tokens == 1
          ? "position lengths[b] - 1"
          : formatv("positions lengths[b] - {0} to lengths[b] - 1", tokens)
                .str();
  if (config.axes)
    positions = "positions";
  std::string rotation = options.rotates ? "These layers do not rotate."
                                         : describeUnrotated().str();
  if (rotates(layer))
    rotation = formatv(
        "q is not rotated yet: this function rotates it, at {0}. "
        "k_cache holds {1}. {2}",
        positions, describeCachedKeys(), describeHeadRotation(frequencies));
  return formatv("Attention of {0}.{1}{2}\nlengths[b] counts the valid keys of "
                 "sequence b in caches with room for capacity keys; {3} in the "
                 "cache already. Other keys are not read; without keys, o is "
                 "0.{4}\n"
                 "{5}\n{6}{7}{8}",
                 subject, window, describeLayers(suffix),
                 tokens == 1 ? "that of the newest token counts too, and is"
                             : "those of the newest tokens count too, and are",
                 describeCaches(), rotation, describeScores(layer),
                 describeNorms(isRaw), describeLogSumExp());
}

std::string ModelModule::describeAppend(FrequenciesAttr frequencies,
                                        const Layer &layer, bool isPaged,
                                        StringRef suffix) {
  const AttentionConfig &attention = *config.attention;
  bool isRaw = options.keyCache == KeyCache::Raw;
  bool rotates = this->rotates(layer) && !isRaw;
  std::string where =
      isPaged
          ? "token t goes to slot slots[t] mod page_size of page slots[t] / "
            "page_size, and nowhere if slots[t] is negative"
          : "token t of sequence b goes to index lengths[b] - tokens + t; "
            "lengths count the new tokens too";
  std::string keys =
      rotates ? formatv("Keys are rotated {0}. {1}",
                        isPaged || getAxes() ? "by their positions"
                                             : "by their index in the cache",
                        describeHeadRotation(frequencies))
                    .str()
      : this->rotates(layer)
          ? "Keys are stored as they come, before norm and rotation."
          : describeUnrotated().str();
  std::string norm =
      attention.norm && !isRaw
          ? " Keys are normed first, with the checkpoint's weights."
          : "";
  std::string quantized =
      hasGivenScales()
          ? "\nThe caches are quantized: elements are divided by k_scales or "
            "v_scales, and clamped to the numbers of the type."
      : isQuantized() ? "\nThe caches are quantized: each row has a scale, its "
                        "largest magnitude divided by that of the type."
                      : "";
  return formatv("Writes keys and values of new tokens into the cache: {0}. "
                 "Other rows are unchanged; the outputs may be the inputs.{1}\n"
                 "{2}{3}{4}",
                 where, describeLayers(suffix), keys, norm, quantized);
}

std::string ModelModule::describeRagged(FrequenciesAttr frequencies,
                                        const Layer &layer, StringRef suffix) {
  return formatv("Attention of whole sequences that follow each other: "
                 "sequence b has the tokens cu_seqlens[b] to cu_seqlens[b + 1] "
                 "(exclusive). Each token sees {0}; tokens after the last "
                 "sequence give 0.{1}\n{2}\n{3}{4}{5}",
                 describeVisible(layer), describeLayers(suffix),
                 describeRotations(frequencies, layer), describeScores(layer),
                 describeNorms(/*ofRawKeys=*/true), describeLogSumExp());
}

std::string ModelModule::describePaged(FrequenciesAttr frequencies,
                                       const Layer &layer, StringRef suffix) {
  bool isRaw = options.keyCache == KeyCache::Raw;
  std::string rotation =
      rotates(layer)
          ? formatv("q is not rotated yet: this function rotates it by its "
                    "positions. The pages hold {0}. {1}",
                    describeCachedKeys(), describeHeadRotation(frequencies))
                .str()
          : describeUnrotated().str();
  return formatv(
      "Attention of the last tokens of each sequence to its pages, for "
      "prefill in chunks and decoding in one call: sequence b has the "
      "queries cu_seqlens[b] to cu_seqlens[b + 1] (exclusive) and "
      "lengths[b] keys, those of the queries included and last. Key j "
      "is in slot j mod page_size of page block_table[b, j / "
      "page_size]. "
      "Each token sees {0}.{1}{2}\n{3}\n{4}{5}{6}",
      describeVisible(layer), describeLayers(suffix), describeCaches(),
      rotation, describeScores(layer), describeNorms(isRaw),
      describeLogSumExp());
}
