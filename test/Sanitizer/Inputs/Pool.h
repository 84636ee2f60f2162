//===- Pool.h - a pool of threads for parallel loops ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_SANITIZER_INPUTS_POOL_H
#define POSENC_TEST_SANITIZER_INPUTS_POOL_H

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

/// Threads that run the parallel loops of any number of callers. The thread
/// sanitizer sees their synchronisation, unlike that of libgomp, which is not
/// compiled with it.
class Pool {
public:
  /// With `isRelaxed`, which is a fault, nothing orders what the tasks of a
  /// loop write before what its caller reads.
  explicit Pool(int numThreads, bool isRelaxed = false) : isRelaxed(isRelaxed) {
    for (int i = 0; i < numThreads; ++i)
      threads.emplace_back([this] { work(); });
  }

  ~Pool() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      isStopping = true;
    }
    changed.notify_all();
    for (std::thread &thread : threads)
      thread.join();
  }

  /// A posenc_parallel_for, whose `ctx` is the pool.
  static void parallelFor(void *ctx, void (*body)(void *arg, int64_t i),
                          void *arg, int64_t n) {
    static_cast<Pool *>(ctx)->run(body, arg, n);
  }

  int64_t getNumTasks() {
    std::lock_guard<std::mutex> lock(mutex);
    return numTasks;
  }

private:
  struct Loop {
    void (*body)(void *arg, int64_t i);
    void *arg;
    int64_t n, next = 0;
    std::atomic<int64_t> done = 0;
  };

  void run(void (*body)(void *arg, int64_t i), void *arg, int64_t n) {
    auto *loop = new Loop{body, arg, n};
    std::unique_lock<std::mutex> lock(mutex);
    numTasks += n;
    loops.push_back(loop);
    changed.notify_all();
    if (isRelaxed) {
      // The loop is not deleted, as that would have to be ordered, too.
      lock.unlock();
      while (loop->done.load(std::memory_order_relaxed) != n)
        std::this_thread::yield();
      return;
    }
    // Only the threads of the pool run tasks, so that all of them are on other
    // threads than the caller's.
    changed.wait(lock, [&] { return loop->done == n; });
    delete loop;
  }

  void work() {
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return isStopping || !loops.empty(); });
      if (loops.empty())
        return;
      Loop *loop = loops.front();
      int64_t task = loop->next++;
      if (loop->next == loop->n)
        loops.pop_front();
      lock.unlock();
      loop->body(loop->arg, task);
      if (isRelaxed)
        loop->done.fetch_add(1, std::memory_order_relaxed);
      lock.lock();
      if (!isRelaxed && ++loop->done == loop->n)
        changed.notify_all();
    }
  }

  const bool isRelaxed;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Loop *> loops; ///< those with tasks left
  bool isStopping = false;
  int64_t numTasks = 0;
  std::vector<std::thread> threads;
};

#endif // POSENC_TEST_SANITIZER_INPUTS_POOL_H
