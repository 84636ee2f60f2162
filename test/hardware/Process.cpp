//===- Process.cpp - commands with a limited time -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Process.h"

#include "Device.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace posenc::hardware;

namespace {

/// Keeps the last line that is not empty of what is added.
class LastLine {
public:
  void add(const char *text, size_t size) {
    for (size_t i = 0; i < size; ++i) {
      if (text[i] != '\n') {
        // A line of any length is kept up to a length that can be printed.
        if (line.size() < 400)
          line += text[i];
      } else if (!line.empty()) {
        last = std::move(line);
        line.clear();
      }
    }
  }
  std::string get() const { return line.empty() ? last : line; }

private:
  std::string line, last;
};

/// A started command, which leads a process group.
class Process {
public:
  Process(const std::vector<std::string> &command, bool isCaptured) {
    std::vector<char *> words;
    for (const std::string &word : command)
      words.push_back(const_cast<char *>(word.c_str()));
    words.push_back(nullptr);
    int ends[2] = {-1, -1};
    if (isCaptured && ::pipe2(ends, O_CLOEXEC) != 0)
      throw Failure(std::string("cannot create a pipe: ") +
                    std::strerror(errno));
    pid_t parent = ::getpid();
    pid = ::fork();
    if (pid < 0)
      throw Failure(std::string("cannot start a process: ") +
                    std::strerror(errno));
    if (pid == 0) {
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent)
        ::_exit(127);
      if (isCaptured) {
        ::dup2(ends[1], 1);
        ::dup2(ends[1], 2);
      }
      ::execvp(words[0], words.data());
      ::dprintf(2, "cannot run %s: %s\n", words[0], std::strerror(errno));
      ::_exit(127);
    }
    ::setpgid(pid, pid); // before the first signal, whoever runs first
    output = ends[0];
    if (isCaptured)
      ::close(ends[1]);
  }
  ~Process() {
    if (output >= 0)
      ::close(output);
  }
  Process(const Process &) = delete;
  Process &operator=(const Process &) = delete;

  /// Waits for the end. Returns whether that came within the time.
  bool wait(double seconds) {
    auto end = std::chrono::steady_clock::now() +
               std::chrono::duration<double>(seconds);
    while (!status) {
      int found = 0;
      if (::waitpid(pid, &found, WNOHANG) == pid)
        status = found;
      else if (std::chrono::steady_clock::now() >= end)
        return false;
      read(status ? 0 : 20);
    }
    return true;
  }
  void kill(int signal) { ::kill(-pid, signal); }

  std::optional<int> status; // of waitpid; none before the end
  LastLine last;

private:
  /// Reads what is there, and waits for more up to some milliseconds. A command
  /// may print faster than this reads, so that a call reads no more than a pipe
  /// holds, and wait() sees that the time is over.
  void read(int milliseconds) {
    if (output < 0) {
      ::usleep(milliseconds * 1000);
      return;
    }
    pollfd descriptor = {output, POLLIN, 0};
    constexpr int maxReads = 16; // 64 KiB
    char buffer[4096];
    for (int i = 0; i < maxReads && ::poll(&descriptor, 1, milliseconds) > 0;
         ++i) {
      ssize_t size = ::read(output, buffer, sizeof(buffer));
      if (size <= 0) {
        ::close(output);
        output = -1;
        return;
      }
      last.add(buffer, size);
      milliseconds = 0;
    }
  }

  pid_t pid = -1;
  int output = -1;
};

} // namespace

Ending posenc::hardware::runProcess(const std::vector<std::string> &command,
                                    double seconds, double grace,
                                    bool isCaptured) {
  auto begin = std::chrono::steady_clock::now();
  Process process(command, isCaptured);
  Ending ending;
  if (!process.wait(seconds)) {
    ending.kind = Ending::Late;
    process.kill(SIGTERM);
    if (!process.wait(grace)) {
      process.kill(SIGKILL);
      process.wait(5);
    }
  }
  // The command may have left processes behind.
  process.kill(SIGKILL);
  ending.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  ending.lastLine = process.last.get();
  if (ending.kind == Ending::Late)
    return ending;
  int status = *process.status;
  ending.kind = WIFSIGNALED(status) ? Ending::Signaled : Ending::Exited;
  ending.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  return ending;
}
