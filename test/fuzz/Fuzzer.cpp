//===- Fuzzer.cpp - coverage-guided search on one door --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Built by the preset `fuzz`, where libFuzzer has the function main. Besides
// libFuzzer's flags, which begin with one dash:
//   --door=NAME      what reads the inputs
//   --seeds=FOLDER   writes the seeds of the door to a folder, and ends
//
//===----------------------------------------------------------------------===//

#include "doors/Doors.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace posenc::fuzz;
using llvm::StringRef;

static const Door *door;
/// The descriptor of the messages of this program. Those of the code under test
/// go to a file, as some doors ask whether an error was printed.
static int messages;

static void writeSeeds(StringRef folder) {
  if (!door->getSeeds)
    return;
  size_t number = 0;
  for (const std::string &seed : door->getSeeds()) {
    std::error_code error;
    llvm::raw_fd_ostream os((folder + "/seed-" + llvm::Twine(number++)).str(),
                            error);
    os << seed;
  }
}

extern "C" int LLVMFuzzerInitialize(int *argc, char ***argv) {
  StringRef folder;
  for (StringRef argument : llvm::ArrayRef(*argv, *argc)) {
    if (argument.consume_front("--door="))
      door = findDoor(argument);
    else if (argument.consume_front("--seeds="))
      folder = argument;
  }
  if (!door) {
    llvm::errs() << "error: no door; --door=NAME is one of:";
    for (const Door &known : getDoors())
      llvm::errs() << ' ' << known.name;
    llvm::errs() << '\n';
    _exit(2);
  }
  if (!folder.empty()) {
    writeSeeds(folder);
    _exit(0);
  }
  messages = dup(STDERR_FILENO);
  // libFuzzer and the sanitizers print to a copy of stderr then.
  static std::vector<char *> arguments(*argv, *argv + *argc);
  static char closeOutput[] = "-close_fd_mask=2";
  arguments.push_back(closeOutput);
  *argc = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  *argv = arguments.data();
  return 0;
}

/// Makes stderr a file that is empty.
static void clearOutput() {
  static int file = -1;
  if (file < 0) {
    file = memfd_create("output", MFD_CLOEXEC);
    dup2(file, STDERR_FILENO);
  }
  constexpr off_t kMaxBytes = 1 << 20;
  if (lseek(STDERR_FILENO, 0, SEEK_CUR) > kMaxBytes &&
      ftruncate(STDERR_FILENO, 0) == 0)
    lseek(STDERR_FILENO, 0, SEEK_SET);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const RunInput run = door->open();
  clearOutput();
  Outcome outcome = run(StringRef(reinterpret_cast<const char *>(data), size));
  if (!outcome.wrong.empty()) {
    dprintf(messages, "\nposenc-fuzz: wrong: %s\n", outcome.wrong.c_str());
    std::abort();
  }
  // An input that is refused is kept, too: messages are code.
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

/// Writes a mutation of the first text. Returns its size.
static size_t mutate(llvm::ArrayRef<std::string> texts, uint8_t *out,
                     size_t maxSize, unsigned seed) {
  Random random(seed);
  std::string result = door->mutate(random, texts);
  size_t size = std::min(result.size(), maxSize);
  std::memcpy(out, result.data(), size);
  return size;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  // libFuzzer's own mutations know the constants that the code compares with.
  if (!door->mutate || seed % 3 == 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::string text(reinterpret_cast<const char *>(data), size);
  return mutate({text, text}, data, maxSize, seed);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *first,
                                            size_t firstSize,
                                            const uint8_t *second,
                                            size_t secondSize, uint8_t *out,
                                            size_t maxSize, unsigned seed) {
  std::string texts[] = {
      std::string(reinterpret_cast<const char *>(first), firstSize),
      std::string(reinterpret_cast<const char *>(second), secondSize)};
  if (door->mutate)
    return mutate(texts, out, maxSize, seed);
  // The beginning of one and the end of the other.
  Random random(seed);
  std::string result = texts[0].substr(0, random.below(firstSize + 1)) +
                       texts[1].substr(random.below(secondSize + 1));
  size_t size = std::min(result.size(), maxSize);
  std::memcpy(out, result.data(), size);
  return size;
}
