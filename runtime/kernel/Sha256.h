//===- Sha256.h - the hash function SHA-256 -----------------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_SHA256_H
#define POSENC_KERNEL_SHA256_H

#include <stddef.h>
#include <stdint.h>

static inline uint32_t rotateRight(uint32_t word, int count) {
  return word >> count | word << (32 - count);
}

/* Adds a block of 64 bytes to the state (FIPS 180-4, section 6.2.2). */
static void addSha256Block(uint32_t state[8], const uint8_t *block) {
  static const uint32_t constants[64] = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
      0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
      0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
      0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
      0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
      0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
      0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
      0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
      0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
      0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
      0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
  uint32_t words[64], v[8];
  for (int i = 0; i < 16; ++i)
    words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    uint32_t a = words[i - 15], b = words[i - 2];
    words[i] = words[i - 16] + words[i - 7] +
               (rotateRight(a, 7) ^ rotateRight(a, 18) ^ a >> 3) +
               (rotateRight(b, 17) ^ rotateRight(b, 19) ^ b >> 10);
  }
  for (int i = 0; i < 8; ++i)
    v[i] = state[i];
  for (int i = 0; i < 64; ++i) {
    uint32_t first =
        v[7] + constants[i] + words[i] + ((v[4] & v[5]) ^ (~v[4] & v[6])) +
        (rotateRight(v[4], 6) ^ rotateRight(v[4], 11) ^ rotateRight(v[4], 25));
    uint32_t second =
        ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2])) +
        (rotateRight(v[0], 2) ^ rotateRight(v[0], 13) ^ rotateRight(v[0], 22));
    for (int j = 7; j > 0; --j)
      v[j] = v[j - 1];
    v[4] += first;
    v[0] = first + second;
  }
  for (int i = 0; i < 8; ++i)
    state[i] += v[i];
}

/* Computes the hash of `size` bytes. */
static void hashSha256(const uint8_t *data, uint64_t size, uint8_t hash[32]) {
  uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  uint64_t rest = size % 64, done = size - rest;
  for (uint64_t at = 0; at < done; at += 64)
    addSha256Block(state, data + at);
  /* The last bytes, a one bit, zeros, and the number of bits. */
  uint8_t last[128] = {0};
  uint64_t end = rest < 56 ? 64 : 128;
  for (uint64_t i = 0; i < rest; ++i)
    last[i] = data[done + i];
  last[rest] = 0x80;
  for (int i = 0; i < 8; ++i)
    last[end - 1 - (uint64_t)i] = (uint8_t)(size * 8 >> 8 * i);
  for (uint64_t at = 0; at < end; at += 64)
    addSha256Block(state, last + at);
  for (int i = 0; i < 32; ++i)
    hash[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}

#endif
