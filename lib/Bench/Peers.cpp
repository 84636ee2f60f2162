//===- Peers.cpp - other implementations of rope ----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Peers.h"

#include "llvm/ADT/STLExtras.h"

#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir::posenc;
using llvm::StringRef;
using llvm::Twine;
namespace json = llvm::json;

extern "C" const char posenc_peers[], posenc_peers_end[];

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

std::string PeerShape::getName() const {
  std::vector<std::vector<int64_t>> shapes;
  for (int64_t count : heads)
    shapes.push_back({1, tokens, count, dim});
  return pairing + "/" + posenc_dtype_name(dtype) + "/" +
         formatShapes(shapes, /*areHeads=*/true);
}

int64_t PeerShape::getBytes() const {
  int64_t lanes = 0;
  for (int64_t count : heads)
    lanes += tokens * count * dim;
  return lanes * static_cast<int64_t>(posenc_dtype_size(dtype));
}

std::vector<PeerShape>
mlir::posenc::getPeerShapes(SuiteSize size, const std::vector<int> &threads) {
  std::vector<PeerShape> shapes;
  const std::vector<int64_t> heads = {32, 8};
  auto addFromMemory = [&](const char *pairing, posenc_dtype dtype) {
    int64_t bytes = 40 * 128 * int64_t(posenc_dtype_size(dtype));
    for (int count : threads)
      shapes.push_back({pairing, dtype, getTokensFromMemory(size, bytes), heads,
                        128, count});
  };
  for (posenc_dtype dtype : {POSENC_F32, POSENC_BF16, POSENC_F16})
    addFromMemory("half", dtype);
  addFromMemory("interleaved", POSENC_F32);
  for (posenc_dtype dtype : {POSENC_F32, POSENC_BF16}) {
    shapes.push_back({"half", dtype, 512, {8}, 64, 1});
    shapes.push_back({"half", dtype, 1, heads, 128, 1});
    shapes.push_back({"half", dtype, 32, heads, 128, 1});
  }
  return shapes;
}

static json::Object toJson(const PeerShape &shape) {
  return json::Object{
      {"pairing", shape.pairing}, {"dtype", posenc_dtype_name(shape.dtype)},
      {"tokens", shape.tokens},   {"heads", json::Array(shape.heads)},
      {"dim", shape.dim},         {"threads", shape.threads}};
}

llvm::Expected<PeerMemory> PeerMemory::create(const PeerShape &shape) {
  PeerMemory memory;
  for (int64_t count : shape.heads)
    for (auto *list : {&memory.from, &memory.to}) {
      llvm::Expected<::posenc::runtime::Array> array =
          allocateArray(shape.dtype, {shape.tokens, count, shape.dim});
      if (!array)
        return array.takeError();
      // Every page is touched once.
      std::memset(array->data(), 1, array->sizeInBytes());
      list->push_back(std::move(*array));
    }
  return memory;
}

std::vector<StreamStep> PeerMemory::getSteps() const {
  std::vector<StreamStep> steps;
  for (auto [source, target] : llvm::zip(from, to)) {
    int64_t bytes = static_cast<int64_t>(source.sizeInBytes());
    StreamStep step;
    step.kind = StreamStep::Copy;
    step.dtype = source.dtype();
    step.from = Region::create(source.data(), bytes);
    step.to = Region::create(target.data(), bytes);
    steps.push_back(std::move(step));
  }
  return steps;
}

//===----------------------------------------------------------------------===//
// The process
//===----------------------------------------------------------------------===//

static llvm::Error makeSystemError(const Twine &what, int number) {
  return llvm::createStringError(what + ": " + std::strerror(number));
}

llvm::Expected<std::unique_ptr<PeerProcess>>
PeerProcess::start(const std::string &python) {
  std::unique_ptr<PeerProcess> process(new PeerProcess);
  int toChild[2], fromChild[2];
  if (pipe2(toChild, O_CLOEXEC))
    return makeSystemError("cannot make a pipe", errno);
  process->requests = fdopen(toChild[1], "w");
  int error = pipe2(fromChild, O_CLOEXEC) ? errno : 0;
  if (!error) {
    process->answers = fdopen(fromChild[0], "r");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, toChild[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fromChild[1], STDOUT_FILENO);
    std::string script(posenc_peers, posenc_peers_end);
    std::string interpreter = python;
    char flag[] = "-c";
    char *argv[] = {interpreter.data(), flag, script.data(), nullptr};
    error = posix_spawnp(&process->child, python.c_str(), &actions, nullptr,
                         argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(fromChild[1]);
  }
  close(toChild[0]);
  if (error) {
    process->child = -1;
    return makeSystemError("cannot run '" + python + "'", error);
  }
  return process;
}

PeerProcess::~PeerProcess() {
  // It ends with its input.
  if (requests)
    std::fclose(requests);
  if (answers)
    std::fclose(answers);
  if (child > 0)
    waitpid(child, nullptr, 0);
}

llvm::Expected<json::Object> PeerProcess::ask(json::Object request) {
  std::string text;
  llvm::raw_string_ostream(text) << json::Value(std::move(request)) << "\n";
  char *line = nullptr;
  size_t capacity = 0;
  bool isAnswered = std::fputs(text.c_str(), requests) >= 0 &&
                    std::fflush(requests) == 0 &&
                    getline(&line, &capacity, answers) > 0;
  std::string answer = isAnswered ? line : "";
  std::free(line);
  if (!isAnswered)
    return llvm::createStringError("the process of the peers has ended");
  llvm::Expected<json::Value> value = json::parse(answer);
  if (!value)
    return value.takeError();
  json::Object *object = value->getAsObject();
  if (!object)
    return llvm::createStringError("the process of the peers answers '" +
                                   answer + "'");
  if (std::optional<StringRef> error = object->getString("error"))
    return llvm::createStringError(*error);
  return std::move(*object);
}

llvm::Expected<PeerProcess::List>
PeerProcess::list(llvm::ArrayRef<PeerShape> shapes) {
  json::Array described;
  for (const PeerShape &shape : shapes)
    described.push_back(toJson(shape));
  llvm::Expected<json::Object> answer =
      ask(json::Object{{"command", "list"}, {"shapes", std::move(described)}});
  if (!answer)
    return answer.takeError();
  List list;
  if (const json::Object *peers = answer->getObject("peers"))
    for (const auto &[name, numbers] : *peers)
      if (const json::Array *array = numbers.getAsArray())
        for (const json::Value &number : *array)
          if (auto index = number.getAsUINT64(); index < shapes.size())
            list.peers[name.str()].push_back(*index);
  if (const json::Object *skipped = answer->getObject("skipped"))
    for (const auto &[name, reason] : *skipped)
      list.skipped[name.str()] = reason.getAsString().value_or("").str();
  return list;
}

llvm::Error PeerProcess::open(const std::string &peer, const PeerShape &shape) {
  return ask(json::Object{
                 {"command", "open"}, {"peer", peer}, {"shape", toJson(shape)}})
      .takeError();
}

llvm::Expected<double> PeerProcess::run(int64_t calls) {
  llvm::Expected<json::Object> answer =
      ask(json::Object{{"command", "run"}, {"calls", calls}});
  if (!answer)
    return answer.takeError();
  std::optional<double> seconds = answer->getNumber("seconds");
  if (!seconds)
    return llvm::createStringError("a peer gives no time");
  return *seconds;
}
