//===- Peers.h - other implementations --------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_BENCH_PEERS_H
#define POSENC_LIB_DRIVER_BENCH_PEERS_H

#include "Suite.h"
#include "posenc/Driver/Bench/Limit.h"
#include "posenc/Driver/Run/Inputs.h"

#include "llvm/Support/JSON.h"

#include <map>
#include <memory>

namespace mlir::posenc {

/// A rope or an attention that peers are asked for.
struct PeerShape {
  /// rope, attention or decode, and the variant as in the names of cases.
  std::string family, variant;
  posenc_dtype dtype;
  int64_t tokens;
  std::vector<int64_t> heads;
  int64_t dim;
  int threads;

  /// variant/dtype/shape, as in the names of cases.
  std::string getName() const;
  /// What has to be read and written, or of keys and values read.
  double getMovedBytes() const;
  /// Products and sums of an attention, 0 of others.
  double getFlops() const;
};

/// Forms of the suite's that peers have, too.
std::vector<PeerShape> getPeerShapes(SuiteSize size,
                                     const std::vector<int> &threads);

/// The Python process that calls the peers.
class PeerProcess {
public:
  /// Starts the interpreter; an error if that is impossible.
  static llvm::Expected<std::unique_ptr<PeerProcess>>
  start(const std::string &python);
  ~PeerProcess();

  /// Which peers there are, with the numbers of the shapes that they have, and
  /// why others are missing.
  struct List {
    std::map<std::string, std::vector<size_t>> peers;
    std::map<std::string, std::string> skipped;
  };
  llvm::Expected<List> list(llvm::ArrayRef<PeerShape> shapes);
  llvm::Error open(const std::string &peer, const PeerShape &shape);
  /// The seconds of this many calls of what is open.
  llvm::Expected<double> run(int64_t calls);

private:
  PeerProcess() = default;
  llvm::Expected<llvm::json::Object> ask(llvm::json::Object request);

  FILE *requests = nullptr, *answers = nullptr;
  pid_t child = -1;
};

/// What the limit of a peer needs: memory that as much is copied between as it
/// reads and writes, or that is read, or none for products and sums.
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

#endif // POSENC_LIB_DRIVER_BENCH_PEERS_H
