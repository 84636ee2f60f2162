//===- Peers.h - other implementations, run in Python -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_BENCH_PEERS_H
#define POSENC_TOOLS_BENCH_PEERS_H

#include "Suite.h"
#include "posenc-bench/Limit.h"
#include "posenc-run/Inputs.h"

#include "llvm/Support/JSON.h"

#include <map>
#include <memory>

namespace mlir::posenc {

/// A rope, attention or decode problem that other implementations are measured
/// on.
struct PeerShape {
  /// The family is `rope`, `attention` or `decode`; both as in names of cases.
  std::string family, variant;
  posenc_dtype dtype;
  /// Tokens of queries and keys, or keys in the cache for decode.
  int64_t tokens;
  /// Head counts of queries and of keys, or of one tensor.
  std::vector<int64_t> heads;
  int64_t dim;
  int threads;

  /// Returns `variant/dtype/shape`, as in names of cases.
  std::string getName() const;
  /// Returns the bytes of rope's tensors, read and written, or the bytes of
  /// keys and values that decode reads.
  double getMovedBytes() const;
  /// Returns the FLOPs of the products of an attention, else 0.
  double getFlops() const;
};

/// Returns the problems of the suite that other implementations support.
/// `threads` are the thread counts of memory-bound and attention problems.
std::vector<PeerShape> getPeerShapes(SuiteSize size,
                                     const std::vector<int> &threads);

/// The Python process that runs Peers/peers.py, which documents the protocol.
class PeerProcess {
public:
  /// Starts the interpreter `python`, a path or a name in PATH. Returns an
  /// error if it cannot be run.
  static llvm::Expected<std::unique_ptr<PeerProcess>>
  start(const std::string &python);
  ~PeerProcess();

  struct List {
    /// Available peers, with the indices of the shapes that each supports.
    std::map<std::string, std::vector<size_t>> peers;
    /// Unavailable peers, with the reason.
    std::map<std::string, std::string> skipped;
  };
  llvm::Expected<List> list(llvm::ArrayRef<PeerShape> shapes);
  /// Prepares the peer for the shape and checks its results. Replaces the
  /// previously opened one.
  llvm::Error open(const std::string &peer, const PeerShape &shape);
  /// Returns the seconds of `calls` calls of the opened peer.
  llvm::Expected<double> run(int64_t calls);

private:
  PeerProcess() = default;
  /// Sends a request and returns the answer, or its error.
  llvm::Expected<llvm::json::Object> ask(llvm::json::Object request);

  FILE *requests = nullptr, *answers = nullptr;
  pid_t child = -1;
};

/// The buffers of a peer's limit: sources and destinations of copies for rope,
/// sources of reads for decode, none for attention, whose limit is the FMA
/// peak.
class PeerMemory {
public:
  static llvm::Expected<PeerMemory> create(const PeerShape &shape);
  std::vector<StreamStep> getSteps() const;

private:
  double flops = 0;
  posenc_dtype dtype = POSENC_F32;
  std::vector<::posenc::runtime::Array> from, to;
};

} // namespace mlir::posenc

#endif // POSENC_TOOLS_BENCH_PEERS_H
