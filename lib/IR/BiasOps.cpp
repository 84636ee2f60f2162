//===- BiasOps.cpp - ALiBi and T5 biases ----------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/Posenc.h"

#include "llvm/ADT/APInt.h"

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::BigFloat;

/// Returns the value of a constant integer or index, or nullopt.
static std::optional<int64_t> getConstant(Attribute attr) {
  if (auto integer = dyn_cast_or_null<IntegerAttr>(attr))
    return integer.getValue().getSExtValue();
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// alibi
//===----------------------------------------------------------------------===//

double AlibiOp::getSlope(int64_t head) {
  int64_t heads = getHeads();
  int64_t n = int64_t{1} << llvm::Log2_64(heads);
  BigFloat exponent = head < n ? BigFloat(-8.0 * (head + 1))
                               : BigFloat(-4.0 * (2 * (head - n) + 1));
  return pow(BigFloat(2.0), exponent / BigFloat(static_cast<double>(n)))
      .toDouble();
}

LogicalResult AlibiOp::verify() {
  int64_t heads = getHeads();
  if (heads < 1 || heads > 65536)
    return emitOpError() << "expected between 1 and 65536 heads, got " << heads
                         << " (alibi_c1)";
  return success();
}

OpFoldResult AlibiOp::fold(FoldAdaptor adaptor) {
  std::optional<int64_t> head = getConstant(adaptor.getHead());
  std::optional<int64_t> query = getConstant(adaptor.getQuery());
  std::optional<int64_t> key = getConstant(adaptor.getKey());
  if (!head || !query || !key || *head < 0 ||
      *head >= static_cast<int64_t>(getHeads()))
    return {};
  // The difference of two indices wraps, as it does at run time.
  APInt distance =
      (APInt(64, *query, /*isSigned=*/true) - APInt(64, *key, true)).abs();
  auto type = cast<FloatType>(getType());
  APFloat slope(getSlope(*head)), factor(type.getFloatSemantics());
  bool losesInfo;
  slope.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                &losesInfo);
  factor.convertFromAPInt(distance, /*IsSigned=*/false,
                          APFloat::rmNearestTiesToEven);
  slope.multiply(factor, APFloat::rmNearestTiesToEven);
  slope.changeSign();
  return FloatAttr::get(type, slope);
}

//===----------------------------------------------------------------------===//
// t5_bucket
//===----------------------------------------------------------------------===//

static APInt power(APInt base, uint64_t exponent) {
  APInt result(base.getBitWidth(), 1);
  for (; exponent != 0; exponent /= 2) {
    if (exponent % 2 != 0)
      result *= base;
    base *= base;
  }
  return result;
}

/// Returns the smallest integer `t` with `t^k >= far^m * near^(k-m)`.
static int64_t getThreshold(int64_t near, int64_t far, int64_t k, int64_t m) {
  BigFloat root = BigFloat(near) * pow(BigFloat(far) / BigFloat(near),
                                       BigFloat(m) / BigFloat(k));
  BigFloat nearest = floor(root + BigFloat(0.5));
  BigFloat difference = root - nearest, margin(0x1p-64);
  if (difference > margin || BigFloat(0.0) - difference > margin)
    return static_cast<int64_t>(ceil(root).toDouble());
  // Near an integer the comparison is done in integers. An overflow in power()
  // occurs only in a factor that is no longer used.
  int64_t t = static_cast<int64_t>(nearest.toDouble());
  unsigned width = 32 * (k + 1);
  auto wide = [&](int64_t value) { return APInt(width, value); };
  bool reaches =
      power(wide(t), k).uge(power(wide(far), m) * power(wide(near), k - m));
  return reaches ? t : t + 1;
}

/// Returns the smallest relative position of a bucket.
static int64_t getThreshold(T5BucketOp op, int64_t bucket) {
  int64_t n = op.getNumBuckets(), exact = n / 2;
  return bucket <= exact ? bucket
                         : getThreshold(exact, op.getMaxDistance(), n - exact,
                                        bucket - exact);
}

SmallVector<int64_t> T5BucketOp::getThresholds() {
  SmallVector<int64_t> thresholds;
  for (int64_t bucket = 1; bucket < getNumBuckets(); ++bucket)
    thresholds.push_back(getThreshold(*this, bucket));
  return thresholds;
}

LogicalResult T5BucketOp::verify() {
  int64_t buckets = getBuckets(), distance = getMaxDistance();
  bool isBidirectional = getBidirectional();
  if (buckets < (isBidirectional ? 4 : 2) || buckets > 1024 ||
      (isBidirectional && buckets % 2 != 0))
    return emitOpError() << "expected "
                         << (isBidirectional ? "an even number of buckets "
                                               "between 4 and 1024"
                                             : "between 2 and 1024 buckets")
                         << ", got " << buckets << " (t5_bucket_c1)";
  if (distance <= getNumBuckets() / 2 || distance > INT32_MAX)
    return emitOpError() << "expected max_distance between "
                         << getNumBuckets() / 2 + 1 << " and " << INT32_MAX
                         << ", got " << distance << " (t5_bucket_c2)";
  return success();
}

OpFoldResult T5BucketOp::fold(FoldAdaptor adaptor) {
  std::optional<int64_t> relative = getConstant(adaptor.getRelative());
  if (!relative || *relative == INT64_MIN)
    return {};
  int64_t bucket = 0, distance = std::max<int64_t>(-*relative, 0);
  if (getBidirectional()) {
    distance = std::abs(*relative);
    bucket = *relative > 0 ? getNumBuckets() : 0;
  }
  // Bisection evaluates few of the thresholds, as each takes a power.
  auto buckets = llvm::seq<int64_t>(1, getNumBuckets());
  auto end = llvm::partition_point(buckets, [&](int64_t number) {
    return getThreshold(*this, number) <= distance;
  });
  bucket += std::distance(buckets.begin(), end);
  return IntegerAttr::get(getType(), bucket);
}
