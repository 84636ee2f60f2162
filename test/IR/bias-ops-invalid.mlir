//===- bias-ops-invalid.mlir - violated constraints of biases ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-diagnostics --split-input-file

// No head.
func.func @f(%i: index) {
  // expected-error @+1 {{'posenc.alibi' op expected between 1 and 65536 heads, got 0 (alibi_c1)}}
  %0 = posenc.alibi(%i, %i, %i) heads = 0 : f32
  return
}

// -----

// Too many heads.
func.func @f(%i: index) {
  // expected-error @+1 {{'posenc.alibi' op expected between 1 and 65536 heads, got 65537 (alibi_c1)}}
  %0 = posenc.alibi(%i, %i, %i) heads = 65537 : f32
  return
}

// -----

// heads = -2^63.
func.func @f(%i: index) {
  // expected-error @+1 {{'posenc.alibi' op expected between 1 and 65536 heads, got -9223372036854775808 (alibi_c1)}}
  %0 = posenc.alibi(%i, %i, %i) heads = -9223372036854775808 : f32
  return
}

// -----

// A bias in f16.
func.func @f(%i: index) {
  // expected-error @+1 {{'posenc.alibi' op result #0 must be 64-bit float or 32-bit float}}
  %0 = posenc.alibi(%i, %i, %i) heads = 8 : f16
  return
}

// -----

// One bucket.
func.func @f(%i: index) {
  // expected-error @+1 {{'posenc.t5_bucket' op expected between 2 and 1024 buckets, got 1 (t5_bucket_c1)}}
  %0 = posenc.t5_bucket %i buckets = 1 : index
  return
}

// -----

// Too many buckets.
func.func @f(%i: index) {
  // expected-error @+1 {{'posenc.t5_bucket' op expected between 2 and 1024 buckets, got 1025 (t5_bucket_c1)}}
  %0 = posenc.t5_bucket %i buckets = 1025 max_distance = 4096 : index
  return
}

// -----

// One bucket for each direction.
func.func @f(%i: index) {
  // expected-error @+1 {{'posenc.t5_bucket' op expected an even number of buckets between 4 and 1024, got 2 (t5_bucket_c1)}}
  %0 = posenc.t5_bucket bidirectional %i buckets = 2 : index
  return
}

// -----

// An odd number for two directions.
func.func @f(%i: index) {
  // expected-error @+1 {{'posenc.t5_bucket' op expected an even number of buckets between 4 and 1024, got 33 (t5_bucket_c1)}}
  %0 = posenc.t5_bucket bidirectional %i buckets = 33 : index
  return
}

// -----

// The logarithm of 1.
func.func @f(%i: index) {
  // expected-error @+1 {{'posenc.t5_bucket' op expected max_distance between 17 and 2147483647, got 16 (t5_bucket_c2)}}
  %0 = posenc.t5_bucket %i max_distance = 16 : index
  return
}

// -----

// max_distance too small for two directions.
func.func @f(%i: index) {
  // expected-error @+1 {{'posenc.t5_bucket' op expected max_distance between 9 and 2147483647, got 8 (t5_bucket_c2)}}
  %0 = posenc.t5_bucket bidirectional %i max_distance = 8 : index
  return
}

// -----

// A distance of 2^31.
func.func @f(%i: index) {
  // expected-error @+1 {{'posenc.t5_bucket' op expected max_distance between 17 and 2147483647, got 2147483648 (t5_bucket_c2)}}
  %0 = posenc.t5_bucket %i max_distance = 2147483648 : index
  return
}

// -----

// A relative position of 16 bits.
func.func @f(%i: i16) {
  // expected-error @+1 {{'posenc.t5_bucket' op operand #0 must be index or 64-bit signless integer or 32-bit signless integer}}
  %0 = posenc.t5_bucket %i : i16
  return
}
