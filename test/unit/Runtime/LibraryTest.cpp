//===- LibraryTest.cpp - Opening and querying libraries -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MemoryLibrary.h"
#include "Support.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace posenc::runtime;
using namespace posenc::test;

namespace {

/// Opens `path`, which must fail with `status`, and returns the text.
std::string refuse(const std::string &path, posenc_status status) {
  posenc_library *library = reinterpret_cast<posenc_library *>(1);
  EXPECT_EQ(posenc_library_open(path.c_str(), &library), status) << path;
  EXPECT_EQ(library, nullptr);
  return posenc_last_error();
}

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

TEST(Library, Opens) {
  std::string error;
  Library library = Library::open(POSENC_TEST_KERNELS, error);
  ASSERT_TRUE(library) << error;
  EXPECT_EQ(library.numFunctions(), 7u);
  EXPECT_STREQ(posenc_library_prefix(library.get()), "fake");
  EXPECT_EQ(posenc_library_num_targets(library.get()), 2u);
  EXPECT_STREQ(posenc_library_target(library.get(), 1), "aarch64");
  EXPECT_EQ(posenc_library_target(library.get(), 2), nullptr);
  EXPECT_EQ(library.metadata().rfind("{\"posenc\"", 0), 0u);
}

TEST(Library, Signatures) {
  std::string error;
  Library library = Library::open(POSENC_TEST_KERNELS, error);
  ASSERT_TRUE(library) << error;
  Function function = library.find("add_positions", error);
  ASSERT_TRUE(function) << error;
  EXPECT_EQ(function.name(), "add_positions");
  EXPECT_STREQ(posenc_function_symbol(function.get()), "fake_add_positions");
  EXPECT_NE(posenc_function_address(function.get()), nullptr);
  ASSERT_EQ(function.numInputs(), 3u);
  ASSERT_EQ(function.numOutputs(), 1u);
  EXPECT_EQ(function.input(0).type(), "?x?x2xf64");
  EXPECT_EQ(function.input(1).type(), "?x?xi64");
  EXPECT_EQ(function.input(2).type(), "i64");
  EXPECT_TRUE(function.input(2).isScalar());
  EXPECT_EQ(function.input(2).rank(), 0);
  EXPECT_EQ(function.output(0).name(), "q_out");
  EXPECT_EQ(function.output(0).size(0), POSENC_DYNAMIC);
  EXPECT_EQ(function.output(0).size(2), 2);
  EXPECT_EQ(function.output(0).sizeName(1), "n1");
  EXPECT_EQ(function.output(0).sizeName(2), "");
  EXPECT_EQ(posenc_function_num_sizes(function.get()), 2u);
  EXPECT_STREQ(posenc_function_size_name(function.get(), 1), "n1");

  // A size that a scalar determines is dynamic, too.
  Function fill = library.find("fill", error);
  EXPECT_EQ(fill.output(0).type(), "?x8xi32");
  EXPECT_EQ(posenc_function_num_sizes(fill.get()), 0u);
}

TEST(Library, OutOfRangeQueriesAreNull) {
  std::string error;
  Library library = Library::open(POSENC_TEST_KERNELS, error);
  const posenc_function *function = posenc_library_function(library.get(), 0);
  const posenc_argument *argument = posenc_function_input(function, 0);
  EXPECT_EQ(posenc_library_function(library.get(), 7), nullptr);
  EXPECT_EQ(posenc_function_input(function, 1), nullptr);
  EXPECT_EQ(posenc_function_output(function, SIZE_MAX), nullptr);
  EXPECT_EQ(posenc_function_size_name(function, 1), nullptr);
  for (int32_t dim : {-1, 2, INT32_MIN, INT32_MAX}) {
    EXPECT_EQ(posenc_argument_size(argument, dim), 0);
    EXPECT_EQ(posenc_argument_size_name(argument, dim), nullptr);
  }
}

TEST(Library, NullQueriesAreHarmless) {
  EXPECT_EQ(posenc_library_metadata(nullptr), nullptr);
  EXPECT_EQ(posenc_library_prefix(nullptr), nullptr);
  EXPECT_EQ(posenc_library_num_targets(nullptr), 0u);
  EXPECT_EQ(posenc_library_target(nullptr, 0), nullptr);
  EXPECT_EQ(posenc_library_num_functions(nullptr), 0u);
  EXPECT_EQ(posenc_library_function(nullptr, 0), nullptr);
  EXPECT_EQ(posenc_library_find(nullptr, "f"), nullptr);
  EXPECT_EQ(posenc_library_set_parallel_for(nullptr, nullptr, nullptr),
            POSENC_INVALID_ARGUMENT);
  EXPECT_EQ(posenc_function_name(nullptr), nullptr);
  EXPECT_EQ(posenc_function_symbol(nullptr), nullptr);
  EXPECT_EQ(posenc_function_address(nullptr), nullptr);
  EXPECT_EQ(posenc_function_num_inputs(nullptr), 0u);
  EXPECT_EQ(posenc_function_num_outputs(nullptr), 0u);
  EXPECT_EQ(posenc_function_num_sizes(nullptr), 0u);
  EXPECT_EQ(posenc_function_input(nullptr, 0), nullptr);
  EXPECT_EQ(posenc_function_output(nullptr, 0), nullptr);
  EXPECT_EQ(posenc_function_size_name(nullptr, 0), nullptr);
  EXPECT_EQ(posenc_argument_name(nullptr), nullptr);
  EXPECT_EQ(posenc_argument_kind(nullptr), POSENC_TENSOR);
  EXPECT_EQ(posenc_argument_dtype(nullptr), POSENC_DTYPE_INVALID);
  EXPECT_EQ(posenc_argument_rank(nullptr), 0);
  EXPECT_EQ(posenc_argument_size(nullptr, 0), 0);
  EXPECT_EQ(posenc_argument_size_name(nullptr, 0), nullptr);
  posenc_library_close(nullptr);

  posenc_library *library;
  EXPECT_EQ(posenc_library_open(nullptr, &library), POSENC_INVALID_ARGUMENT);
  EXPECT_EQ(posenc_library_open("x", nullptr), POSENC_INVALID_ARGUMENT);
  EXPECT_EQ(posenc_library_from_symbols(nullptr, lookupIn, nullptr, &library),
            POSENC_INVALID_ARGUMENT);
  EXPECT_EQ(posenc_library_from_symbols("{}", nullptr, nullptr, &library),
            POSENC_INVALID_ARGUMENT);
  EXPECT_EQ(posenc_library_from_symbols("{}", lookupIn, nullptr, nullptr),
            POSENC_INVALID_ARGUMENT);
}

TEST(Library, FindListsWhatExists) {
  std::string error;
  Library library = Library::open(POSENC_TEST_KERNELS, error);
  EXPECT_FALSE(library.find("rope", error));
  EXPECT_EQ(error, "no function 'rope'; the library has scale, add_positions, "
                   "fill, fails, scratch, loop, mix");
  EXPECT_FALSE(library.find(std::string(10000, 'a'), error));
  EXPECT_TRUE(contains(error, "; the library has scale, ")) << error;
}

TEST(Library, MessagesHaveNoControlCharacters) {
  std::string error =
      refuse("\x1b[31mn\u00e4me\u009b\n\x7f\xff.so", POSENC_NOT_FOUND);
  EXPECT_TRUE(contains(error, "\\x1B[31mn\u00e4me\\xC2\\x9B\\x0A\\x7F\\xFF.so"))
      << error;
  // A long text ends with a whole character.
  error = refuse(std::string(5000, '\x1b'), POSENC_IO_ERROR);
  EXPECT_GT(error.size(), 4000u);
  EXPECT_EQ(error.substr(error.size() - 4), "\\x1B");
}

TEST(Library, MayBeTheFirstDescriptor) {
  int input = ::dup(0);
  ::close(0);
  std::string error;
  Library library = Library::open(POSENC_TEST_KERNELS, error);
  if (input >= 0) {
    ::dup2(input, 0);
    ::close(input);
  }
  EXPECT_TRUE(library) << error;
}

TEST(Library, RefusesOtherFiles) {
  TempDir folder;
  EXPECT_TRUE(contains(refuse(folder.path("none.so"), POSENC_NOT_FOUND),
                       "No such file"));
  EXPECT_TRUE(contains(refuse("", POSENC_NOT_FOUND), "No such file"));
  EXPECT_TRUE(contains(refuse(folder.path(""), POSENC_BAD_LIBRARY),
                       "not a regular file"));
  refuse("/dev/null", POSENC_BAD_LIBRARY);
  // Opening a pipe without a writer must not block.
  std::string pipe = folder.path("pipe.so");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  refuse(pipe, POSENC_BAD_LIBRARY);
  writeFile(folder.path("empty.so"), "");
  EXPECT_TRUE(contains(refuse(folder.path("empty.so"), POSENC_BAD_LIBRARY),
                       "not an ELF file"));
  writeFile(folder.path("text.so"), "INPUT(libm.so.6)\n");
  refuse(folder.path("text.so"), POSENC_BAD_LIBRARY);
}

/// The dynamic loader refuses these itself, without a crash.
TEST(Library, RefusesOtherKindsOfElf) {
  TempDir folder;
  std::string bytes = readFile(POSENC_TEST_KERNELS);
  std::string path = folder.path("other.so");
  auto expectRefused = [&](size_t offset, char value) {
    std::string changed = bytes;
    changed[offset] = value;
    writeFile(path, changed);
    EXPECT_TRUE(contains(refuse(path, POSENC_BAD_LIBRARY), "cannot be loaded"))
        << offset;
  };
  expectRefused(EI_VERSION, 9);
  expectRefused(offsetof(Elf64_Ehdr, e_version), 9);
  for (char type : {ET_NONE, ET_REL, ET_EXEC, ET_CORE})
    expectRefused(offsetof(Elf64_Ehdr, e_type), type);
}

struct Refused {
  int variant;
  const char *text;
  bool mayRun; ///< whether the library is loaded before it is refused
};

TEST(Library, RefusesOtherLibraries) {
  const Refused cases[] = {
      {1, "not a posenc kernel library: it has no '..._metadata'", false},
      {2, "'worse_metadata'", false},
      {3, "not a posenc kernel library", false},
      {4, "not a posenc kernel library", false},
      {5, "not a posenc kernel library", false},
      {6, "no symbol 'bad_g' for the function 'f'", true},
      {7, "prefix 'bad' does not agree with the symbol 'good_metadata'", true},
      {8, "metadata: NULL", true},
      {9, "metadata: not valid JSON", true},
      {10, "abi 2 is unknown", true},
      {11, "posenc_test_nobody_has_this", false},
      {13, "'foreign_get_metadata', but its other functions do not share",
       false},
  };
  for (const Refused &item : cases) {
    ::unsetenv("POSENC_TEST_LOADED");
    std::string path = std::string(POSENC_TEST_REFUSED_DIR) + "/refused" +
                       std::to_string(item.variant) + ".so";
    std::string text = refuse(path, POSENC_BAD_LIBRARY);
    EXPECT_TRUE(contains(text, item.text)) << item.variant << ": " << text;
    EXPECT_EQ(text.rfind(path, 0), 0u) << text;
    EXPECT_EQ(::getenv("POSENC_TEST_LOADED") != nullptr, item.mayRun)
        << item.variant;
  }
}

TEST(Library, WorkspaceMustBeAFunction) {
  std::string error;
  Library library = Library::open(
      std::string(POSENC_TEST_REFUSED_DIR) + "/refused12.so", error);
  ASSERT_TRUE(library) << error;
  EXPECT_TRUE(
      library.find("f", error).call({}, std::vector<posenc_value>(), error))
      << error;
}

TEST(Library, OpensTwiceAndByRelativePath) {
  TempDir folder;
  std::filesystem::copy_file(POSENC_TEST_KERNELS, folder.path("libfake.so"));
  std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path(""));
  std::string error;
  {
    Library first = Library::open("libfake.so", error);
    Library second = Library::open("./libfake.so", error);
    EXPECT_TRUE(first && second) << error;
    EXPECT_EQ(posenc_function_address(first.function(0).get()),
              posenc_function_address(second.function(0).get()));
    first = Library();
    EXPECT_TRUE(second.find("scale", error)) << error;
  }
  std::filesystem::current_path(before);
}

/// dlopen() alone would return the old library for the same name.
TEST(Library, OpensAReplacedFile) {
  TempDir folder;
  std::string path = folder.path("lib.so"), error;
  std::string other = std::string(POSENC_TEST_REFUSED_DIR) + "/refused12.so";
  std::filesystem::copy_file(POSENC_TEST_KERNELS, path);
  Library first = Library::open(path, error);
  ASSERT_TRUE(first) << error;
  for (int round = 0; round < 3; ++round) {
    std::filesystem::copy_file(round % 2 ? POSENC_TEST_KERNELS : other.c_str(),
                               folder.path("new"));
    std::filesystem::rename(folder.path("new"), path);
    Library second = Library::open(path, error);
    ASSERT_TRUE(second) << error;
    EXPECT_STREQ(posenc_library_prefix(second.get()),
                 round % 2 ? "fake" : "bad");
    EXPECT_STREQ(posenc_library_prefix(first.get()), "fake");
    if (round == 1)
      first = std::move(second);
  }
}

TEST(Library, ErrorTextsBelongToThreads) {
  refuse("/nonexistent/a.so", POSENC_NOT_FOUND);
  std::string inThread = "unset";
  std::thread([&] { inThread = posenc_last_error(); }).join();
  EXPECT_EQ(inThread, "");
  EXPECT_TRUE(contains(posenc_last_error(), "/nonexistent/a.so"));
  // A call that succeeds does not change the text.
  std::string error;
  EXPECT_TRUE(Library::open(POSENC_TEST_KERNELS, error));
  EXPECT_TRUE(contains(posenc_last_error(), "/nonexistent/a.so"));
}

void *throwing(void *, const char *) { throw 1; }

TEST(Library, CatchesExceptionsOfCallbacks) {
  posenc_library *library = nullptr;
  std::string json = libraryJson(functionJson("f", "", "", ""));
  EXPECT_EQ(
      posenc_library_from_symbols(json.c_str(), throwing, nullptr, &library),
      POSENC_INVALID_ARGUMENT);
  EXPECT_EQ(library, nullptr);
}

TEST(Library, FromSymbolsNeedsEverySymbol) {
  std::string error;
  std::string json = libraryJson(functionJson("f", "", "", ""));
  EXPECT_FALSE(openMemory(json, {}, error));
  EXPECT_EQ(error, "no symbol 'm_f' for the function 'f'");
  EXPECT_FALSE(openMemory("[]", {}, error));
  EXPECT_EQ(error, "metadata: not an object");
}

struct Loop {
  int64_t calls = 0, n = 0;
};

void countingFor(void *ctx, void (*body)(void *, int64_t), void *arg,
                 int64_t n) {
  auto *loop = static_cast<Loop *>(ctx);
  ++loop->calls;
  loop->n = n;
  for (int64_t i = n; i-- > 0;)
    body(arg, i);
}

TEST(Library, SetsTheParallelLoop) {
  std::string error;
  Library library = Library::open(POSENC_TEST_KERNELS, error);
  Function function = library.find("loop", error);
  Array out;
  ASSERT_TRUE(Array::allocate(POSENC_I64, {5}, out, error)) << error;
  Loop loop;
  ASSERT_TRUE(library.setParallelFor(countingFor, &loop, error)) << error;
  ASSERT_TRUE(function.call({}, {out.value()}, error)) << error;
  EXPECT_EQ(loop.calls, 1);
  EXPECT_EQ(loop.n, 5);
  EXPECT_EQ(out.dataAs<int64_t>()[4], 40);
  ASSERT_TRUE(library.setParallelFor(nullptr, nullptr, error)) << error;
  ASSERT_TRUE(function.call({}, {out.value()}, error)) << error;
  EXPECT_EQ(loop.calls, 1);

  Library none = openMemory(libraryJson(""), {}, error);
  EXPECT_EQ(posenc_library_set_parallel_for(none.get(), countingFor, nullptr),
            POSENC_NOT_FOUND);
}

} // namespace
