//===- Session.h - the cases of one run -------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_BENCH_SESSION_H
#define POSENC_LIB_DRIVER_BENCH_SESSION_H

#include "BenchKernel.h"
#include "Peers.h"
#include "Request.h"
#include "Subject.h"

namespace mlir::posenc {

/// The cases of one run of the tool. The kernel and memory of one of them are
/// kept at a time.
class Session {
public:
  explicit Session(const BenchRequest &request) : request(request) {}
  /// Returns the program's exit code.
  int run();

private:
  bool makeCases();
  bool makeCasesOfFile();
  bool findPeers();
  bool matches(llvm::StringRef name) const;
  int verifyAll();
  int list() const;
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

  std::string openName;
  std::unique_ptr<BenchKernel> kernel;
  /// An older library's code for it, if there is: what it is compared with.
  struct Baseline {
    CaseLibrary library;
    BenchKernel::Call call;
    bool hasSameBits;
  };
  std::optional<Baseline> baseline;
  /// What it is compared with.
  std::string plainName;
  std::unique_ptr<BenchKernel> plainKernel;
  /// The times of the cases that have been measured, by their names.
  struct Measured {
    double seconds, fraction;
  };
  std::map<std::string, Measured> done;
  uint64_t hash = 0;
  int exitCode = 0;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_BENCH_SESSION_H
