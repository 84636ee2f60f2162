//===- AttentionBias.cpp - biases of the attention of a model -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelModule.h"

#include "posenc/IR/Attention.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
using llvm::formatv;
using ::posenc::frontend::ScoreBias;

/// Adds the learned table of T5, which has the type of the scores.
void ModelModule::addBiasOperand(SmallVectorImpl<NamedType> &arguments) {
  const std::optional<ScoreBias> &bias = config.attention->bias;
  if (!bias || bias->kind != ScoreBias::Kind::T5)
    return;
  Type scores = dtype == ::posenc::frontend::DType::F64
                    ? Type(builder.getF64Type())
                    : Type(builder.getF32Type());
  arguments.push_back(
      {"rel_bias", getType({bias->numBuckets, config.numHeads}, scores)});
}

void ModelModule::buildBias(AttentionOp op, const Layer &layer, Value table) {
  if (!config.attention->bias)
    return;
  const ScoreBias &bias = *config.attention->bias;
  bool isBidirectional = !config.attention->isCausalIn(layer);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op);
  buildScore(
      builder, op, [&](OpBuilder &nested, Location loc, ValueRange arguments) {
        Value score = arguments[0], head = arguments[2], query = arguments[3],
              key = arguments[4], added;
        if (bias.kind == ScoreBias::Kind::T5) {
          Value relative = arith::SubIOp::create(nested, loc, key, query);
          Value bucket = T5BucketOp::create(nested, loc, relative.getType(),
                                            relative, isBidirectional,
                                            bias.numBuckets, bias.maxDistance);
          added = tensor::ExtractOp::create(nested, loc, table,
                                            ValueRange{bucket, head});
        } else {
          added = AlibiOp::create(nested, loc, score.getType(), head, query,
                                  key, config.numHeads);
          if (bias.isScaled) {
            Value factor = arith::ConstantOp::create(
                nested, loc,
                nested.getFloatAttr(
                    score.getType(),
                    1 / std::sqrt(double(config.attention->headDim))));
            added = arith::MulFOp::create(nested, loc, added, factor);
          }
        }
        return arith::AddFOp::create(nested, loc, score, added).getResult();
      });
}

/// Describes the bias of the scores.
std::string ModelModule::describeBias(const Layer &layer) {
  if (!config.attention->bias)
    return "";
  const ScoreBias &bias = *config.attention->bias;
  if (bias.kind == ScoreBias::Kind::T5)
    return formatv(" rel_bias[b][h] is added to the scores of head h, with b "
                   "the {0} T5 bucket of the key's index minus the query's, of "
                   "{1} buckets up to a distance of {2}.",
                   config.attention->isCausalIn(layer) ? "unidirectional"
                                                       : "bidirectional",
                   bias.numBuckets, bias.maxDistance);
  std::string factor =
      bias.isScaled
          ? formatv(", times 1/sqrt({0}),", config.attention->headDim).str()
          : "";
  return formatv(" ALiBi{0} is added to them: the distance between query and "
                 "key times the negative slope of the head.",
                 factor);
}
