//===- BiasOps.td - relative-position biases ---------------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_BIASOPS_TD
#define POSENC_IR_BIASOPS_TD

include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "posenc/IR/PosencDialect.td"

/// A pure scalar operation, which may be used in the regions of attention.
class Posenc_BiasOp<string mnemonic, list<Trait> traits = []>
    : Op<PosencDialect, mnemonic, [Pure] # traits> {
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Posenc_AlibiOp : Posenc_BiasOp<"alibi"> {
  let summary = "ALiBi: a bias linear in the relative position";
  let description = [{
    The result is `-slope * |query - key|`. With `n = 2^floor(log2(heads))`, the
    slope of head `h` is `2^(-8(h+1)/n)` if `h < n`, else
    `2^(-4(2(h-n)+1)/n)`. The slope and `|query - key|` are rounded to the
    result's type, and then their product is. For heads outside of `[0, heads)`,
    the result is undefined.
    Source: Press et al., Train Short, Test Long (2021).

    ```mlir
    func.func @alibi(%q: tensor<?x?x8x64xf32>, %o: tensor<?x?x8x64xf32>) -> tensor<?x?x8x64xf32> {
      %r = posenc.attention causal
        ins(%q, %q, %q : tensor<?x?x8x64xf32>, tensor<?x?x8x64xf32>, tensor<?x?x8x64xf32>)
        outs(%o : tensor<?x?x8x64xf32>)
        score(%s, %b, %h, %i, %j) {
          %bias = posenc.alibi(%h, %i, %j) heads = 8 : f32
          %x = arith.addf %s, %bias : f32
          posenc.yield %x : f32
        }
      return %r : tensor<?x?x8x64xf32>
    }
    ```

    Constraints:
    - (alibi_c1) `heads` is between 1 and 65536.
  }];
  let arguments = (ins Index:$head, Index:$query, Index:$key, I64Attr:$heads);
  let results = (outs AnyTypeOf<[F64, F32]>:$result);
  let assemblyFormat = [{
    `(` $head `,` $query `,` $key `)` `heads` `=` $heads attr-dict `:` type($result)
  }];
  let extraClassDeclaration = [{
    /// Returns the slope of a head, `0 <= head < heads`, correctly rounded.
    double getSlope(int64_t head);
  }];
}

def Posenc_T5BucketOp : Posenc_BiasOp<"t5_bucket",
                                      [SameOperandsAndResultType]> {
  let summary = "T5: the bucket of a relative position";
  let description = [{
    The result is the index of a learned bias for `relative`, the key's position
    minus the query's. Without `bidirectional`, `n = buckets`,
    `r = max(-relative, 0)` and `b = 0`. With `bidirectional`, `n = buckets/2`,
    `r = |relative|`, and `b` is `n` if `relative > 0`, else 0. With
    `e = floor(n/2)`, the result is `b + r` if `r < e`, else
    `b + min(n-1, e + floor(ln(r/e) / ln(max_distance/e) * (n-e)))`.

    No logarithm is computed at run time: the result is `b` plus the number of
    thresholds `t_1 <= ... <= t_(n-1)` that are not greater than `r`. The
    compiler computes the thresholds exactly: `t_m = m` for `m <= e`; for other
    `m`, `t_m` is the smallest integer `t` with
    `t^(n-e) >= max_distance^(m-e) * e^(n-m)`. For the default `buckets` and
    `max_distance` they are 1 to 8, 12, 16, 23, 32, 46, 64, 91 with
    `bidirectional`, and 1 to 16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77,
    87, 99, 113 without.
    Source: Raffel et al., Exploring the Limits of Transfer Learning (2020).

    ```mlir
    func.func @t5(%q: tensor<?x?x8x64xf32>, %table: tensor<32x8xf32>, %o: tensor<?x?x8x64xf32>) -> tensor<?x?x8x64xf32> {
      %r = posenc.attention scale = 1.0
        ins(%q, %q, %q : tensor<?x?x8x64xf32>, tensor<?x?x8x64xf32>, tensor<?x?x8x64xf32>)
        outs(%o : tensor<?x?x8x64xf32>)
        score(%s, %b, %h, %i, %j) {
          %relative = arith.subi %j, %i : index
          %bucket = posenc.t5_bucket bidirectional %relative : index
          %bias = tensor.extract %table[%bucket, %h] : tensor<32x8xf32>
          %x = arith.addf %s, %bias : f32
          posenc.yield %x : f32
        }
      return %r : tensor<?x?x8x64xf32>
    }
    ```

    Constraints:
    - (t5_bucket_c1) `buckets` is between 2 and 1024; if `bidirectional`, it is
      even and at least 4.
    - (t5_bucket_c2) `max_distance` is greater than `e` and less than 2^31.
  }];
  let arguments = (ins
    AnyTypeOf<[Index, I64, I32]>:$relative,
    UnitAttr:$bidirectional,
    DefaultValuedAttr<I64Attr, "32">:$buckets,
    DefaultValuedAttr<I64Attr, "128">:$max_distance);
  let results = (outs AnyTypeOf<[Index, I64, I32]>:$bucket);
  let assemblyFormat = [{
    (`bidirectional` $bidirectional^)? $relative (`buckets` `=` $buckets^)?
    (`max_distance` `=` $max_distance^)? attr-dict `:` type($relative)
  }];
  let extraClassDeclaration = [{
    /// Returns the number of buckets of one direction, `n`.
    int64_t getNumBuckets() {
      return static_cast<int64_t>(getBuckets()) / (getBidirectional() ? 2 : 1);
    }
    /// Returns the thresholds `t_1, ..., t_(n-1)`.
    ::llvm::SmallVector<int64_t> getThresholds();
  }];
}

#endif // POSENC_IR_BIASOPS_TD
