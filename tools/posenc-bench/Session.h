//===- Session.h - one run of posenc-bench ----------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_BENCH_SESSION_H
#define POSENC_TOOLS_BENCH_SESSION_H

#include "BenchKernel.h"
#include "Peers.h"
#include "Request.h"
#include "Subject.h"

namespace mlir::posenc {

/// One run of the tool over all selected cases. Holds the kernel and memory of
/// one case at a time.
class Session {
public:
  explicit Session(const BenchRequest &request) : request(request) {}
  /// Returns the program's exit code.
  int run();

private:
  // These return false after an error, which is printed.
  bool makeCases();
  bool makeFileCases();
  bool findPeers();
  bool matches(llvm::StringRef name) const;
  /// Prints the hash of each case's results; returns the exit code.
  int verifyAll();
  /// Adds a benchmark if the filter selects its name.
  void
  add(const std::string &name,
      std::function<void(Sampling &sampling, ::benchmark::State &)> measure);

  const BenchKernel *open(const Case &wanted);
  const BenchKernel *openPlain(const std::string &name);
  bool openBaseline(const Case &wanted);
  void measureCase(const Case &measured, int threads, Sampling &sampling,
                   ::benchmark::State &state);
  void measurePeer(const std::string &peer, const PeerShape &shape,
                   Sampling &sampling, ::benchmark::State &state);

  const BenchRequest &request;
  std::vector<Case> cases;
  std::unique_ptr<PeerProcess> peers;
  std::vector<PeerShape> peerShapes;
  struct Benchmark {
    std::string name;
    std::function<void(Sampling &sampling, ::benchmark::State &)> measure;
    Sampling sampling;
  };
  std::vector<Benchmark> benchmarks;

  /// The open case and its kernel.
  std::string openName;
  std::unique_ptr<BenchKernel> kernel;
  /// The function of `kernel` from the library of --baseline, if there is one.
  struct Baseline {
    CaseLibrary library;
    BenchKernel::Call call;
    bool hasSameBits;
  };
  std::optional<Baseline> baseline;
  /// The plain attention that the open case's time per tile is compared with.
  std::string plainName;
  std::unique_ptr<BenchKernel> plainKernel;
  /// The median seconds and the fraction of the limit of the cases measured so
  /// far, by name.
  struct Measured {
    double seconds, fraction;
  };
  std::map<std::string, Measured> done;
  /// Hash of the results of `kernel`.
  uint64_t hash = 0;
  int exitCode = 0;
};

} // namespace mlir::posenc

#endif // POSENC_TOOLS_BENCH_SESSION_H
