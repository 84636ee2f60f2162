//===- Peers.cpp - other implementations, run in Python -------------------===//
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

/// Returns the shapes in a case's name: [1, heads, tokens, dim] of the KV cache
/// for decode, else [1, tokens, heads, dim] of queries and keys.
static std::vector<std::vector<int64_t>> getShapes(const PeerShape &shape) {
  if (shape.family == "decode")
    return {{1, shape.heads.back(), shape.tokens, shape.dim}};
  std::vector<std::vector<int64_t>> shapes;
  for (int64_t count : shape.heads)
    shapes.push_back({1, shape.tokens, count, shape.dim});
  return shapes;
}

std::string PeerShape::getName() const {
  return variant + "/" + posenc_dtype_name(dtype) + "/" +
         formatShapes(getShapes(*this), /*areHeads=*/true);
}

double PeerShape::getMovedBytes() const {
  int64_t elements = 0;
  for (const std::vector<int64_t> &shape : getShapes(*this))
    elements += shape[1] * shape[2] * shape[3];
  // Rope reads and writes each tensor; decode reads keys and values.
  return 2.0 * double(elements) * double(posenc_dtype_size(dtype));
}

double PeerShape::getFlops() const {
  if (family != "attention")
    return 0;
  double all = double(tokens);
  double pairs = variant == "causal" ? all * (all + 1) / 2 : all * all;
  return 4 * pairs * double(heads.front()) * double(dim);
}

std::vector<PeerShape>
mlir::posenc::getPeerShapes(SuiteSize size, const std::vector<int> &threads) {
  std::vector<PeerShape> shapes;
  const std::vector<int64_t> heads = {32, 8};
  auto add = [&](const char *variant, posenc_dtype dtype, int64_t tokens,
                 const std::vector<int64_t> &heads, int64_t dim, int count) {
    shapes.push_back({"rope", variant, dtype, tokens, heads, dim, count});
  };
  auto addMemoryBound = [&](const char *pairing, posenc_dtype dtype) {
    int64_t bytes = 40 * 128 * int64_t(posenc_dtype_size(dtype));
    for (int count : threads)
      add(pairing, dtype, getMemoryBoundTokens(size, bytes), heads, 128, count);
  };
  for (posenc_dtype dtype : {POSENC_F32, POSENC_BF16, POSENC_F16})
    addMemoryBound("half", dtype);
  addMemoryBound("interleaved", POSENC_F32);
  for (posenc_dtype dtype : {POSENC_F32, POSENC_BF16}) {
    add("half", dtype, 512, {8}, 64, 1);
    add("half", dtype, 1, heads, 128, 1);
    add("half", dtype, 32, heads, 128, 1);
  }
  for (posenc_dtype dtype : {POSENC_F32, POSENC_BF16}) {
    AttentionForm form;
    form.dtype = dtype;
    std::vector<int64_t> all = {form.queryHeads, form.keyHeads};
    for (int count : threads) {
      for (const char *variant : {"full", "causal"})
        shapes.push_back({"attention", variant, dtype,
                          getAttentionTokens(size, 1024), all, form.headDim,
                          count});
      shapes.push_back({"decode", "rotated", dtype,
                        getMemoryBoundKeys(size, form), all, form.headDim,
                        count});
    }
  }
  return shapes;
}

static json::Object toJson(const PeerShape &shape) {
  return json::Object{{"family", shape.family},
                      {"variant", shape.variant},
                      {"dtype", posenc_dtype_name(shape.dtype)},
                      {"tokens", shape.tokens},
                      {"heads", json::Array(shape.heads)},
                      {"dim", shape.dim},
                      {"threads", shape.threads}};
}

llvm::Expected<PeerMemory> PeerMemory::create(const PeerShape &shape) {
  PeerMemory memory;
  if (shape.family == "attention") {
    // This bounds the time of the limit, not its rate; see
    // BenchKernel::getSteps.
    constexpr double maxFlops = 4e9;
    memory.flops = std::min(shape.getFlops(), maxFlops);
    memory.dtype = shape.dtype;
    return memory;
  }
  // The limit of decode reads keys and values; that of rope copies queries and
  // keys.
  std::vector<std::vector<int64_t>> shapes = getShapes(shape);
  if (shape.family == "decode")
    shapes.push_back(shapes.front());
  for (const std::vector<int64_t> &sizes : shapes)
    for (auto *list : {&memory.from, &memory.to}) {
      if (list == &memory.to && shape.family == "decode")
        continue;
      llvm::Expected<::posenc::runtime::Array> array =
          allocateArray(shape.dtype, sizes);
      if (!array)
        return array.takeError();
      // Touches every page, so that page faults are not measured.
      std::memset(array->data(), 1, array->sizeInBytes());
      list->push_back(std::move(*array));
    }
  return memory;
}

std::vector<StreamStep> PeerMemory::getSteps() const {
  std::vector<StreamStep> steps;
  if (flops > 0) {
    StreamStep step;
    step.kind = StreamStep::Fma;
    step.dtype = dtype;
    step.flops = flops;
    steps.push_back(std::move(step));
  }
  if (to.empty())
    for (const ::posenc::runtime::Array &source : from) {
      StreamStep step;
      step.kind = StreamStep::Read;
      step.dtype = source.dtype();
      step.from = ByteRows::create(source.data(),
                                   static_cast<int64_t>(source.sizeInBytes()));
      steps.push_back(std::move(step));
    }
  for (auto [source, target] : llvm::zip(from, to)) {
    int64_t bytes = static_cast<int64_t>(source.sizeInBytes());
    StreamStep step;
    step.kind = StreamStep::Copy;
    step.dtype = source.dtype();
    step.from = ByteRows::create(source.data(), bytes);
    step.to = ByteRows::create(target.data(), bytes);
    steps.push_back(std::move(step));
  }
  return steps;
}

//===----------------------------------------------------------------------===//
// The Python process
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
  // The process exits at the end of its input.
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
    return llvm::createStringError(
        "the Python process that runs the peers has exited");
  llvm::Expected<json::Value> value = json::parse(answer);
  if (!value)
    return value.takeError();
  json::Object *object = value->getAsObject();
  if (!object)
    return llvm::createStringError(
        "expected a JSON object from the Python process that runs the peers, "
        "got '" +
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
    return llvm::createStringError(
        "expected 'seconds' from the Python process that runs the peers");
  return *seconds;
}
