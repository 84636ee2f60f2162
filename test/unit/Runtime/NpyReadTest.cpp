//===- NpyReadTest.cpp - Reading .npy files, good and bad -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support.h"
#include "posenc/runtime/npy.h"

#include <cstring>
#include <gtest/gtest.h>
#include <sys/stat.h>

using namespace posenc::runtime;
using namespace posenc::test;

namespace {

std::string dictionary(const std::string &descr, const std::string &shape,
                       const std::string &order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order +
         ", 'shape': " + shape + ", }\n";
}

std::string npy(const std::string &text, const std::string &data,
                int version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += {static_cast<char>(version), '\0'};
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    bytes.push_back(static_cast<char>(text.size() >> (8 * i)));
  return bytes + text + data;
}

template <typename T> std::string raw(std::initializer_list<T> values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(&bytes[0], values.begin(), bytes.size());
  return bytes;
}

class NpyRead : public testing::Test {
protected:
  bool read(const std::string &bytes) {
    writeFile(folder.path("x.npy"), bytes);
    error.clear();
    return readNpy(folder.path("x.npy"), array, error);
  }
  /// Expects a failure with a text that contains `part`, and an unchanged
  /// array.
  void refuse(const std::string &bytes, const std::string &part) {
    Array before;
    std::string ignored;
    ASSERT_TRUE(Array::allocate(POSENC_I8, {7}, array, ignored));
    EXPECT_FALSE(read(bytes)) << part;
    EXPECT_NE(error.find(part), std::string::npos) << error << " / " << part;
    EXPECT_EQ(error.rfind(folder.path("x.npy") + ": ", 0), 0u) << error;
    EXPECT_EQ(array.shape(), std::vector<int64_t>{7});
  }

  TempDir folder;
  Array array;
  std::string error;
};

TEST_F(NpyRead, Types) {
  struct {
    const char *descr;
    posenc_dtype dtype;
  } cases[] = {{"<f2", POSENC_F16},  {"<f4", POSENC_F32},  {"<f8", POSENC_F64},
               {"<i4", POSENC_I32},  {"<i8", POSENC_I64},  {"<u2", POSENC_BF16},
               {"|V2", POSENC_BF16}, {"<V2", POSENC_BF16}, {"=f4", POSENC_F32},
               {">f8", POSENC_F64},  {">u2", POSENC_BF16}, {"|i1", POSENC_I8},
               {"|b1", POSENC_I1},   {"|u1", POSENC_U8}};
  for (const auto &item : cases) {
    size_t size = posenc_dtype_size(item.dtype);
    ASSERT_TRUE(
        read(npy(dictionary(item.descr, "(3,)"), std::string(3 * size, '\1'))))
        << error;
    EXPECT_EQ(array.dtype(), item.dtype) << item.descr;
    EXPECT_EQ(array.shape(), std::vector<int64_t>{3});
    EXPECT_EQ(array.dataAs<char>()[3 * size - 1], 1);
  }
  for (const char *descr :
       {"<u4", "<f1", "<c8", "|f4", ">V2", "|u2", "<V4", "<U2", "|S2", "<M8",
        "f4", "", "<f44", "<", "!f4", "|O", "<f16"})
    refuse(npy(dictionary(descr, "(1,)"), "12345678"), "is not supported");
  refuse(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
             "1234"),
         "structured types are not supported");
}

TEST_F(NpyRead, ShapesAndOrder) {
  ASSERT_TRUE(read(npy(dictionary("<f4", "()"), raw<float>({1.5f})))) << error;
  EXPECT_EQ(array.shape(), std::vector<int64_t>{});
  EXPECT_EQ(*array.dataAs<float>(), 1.5f);
  ASSERT_TRUE(read(npy(dictionary("<f4", "(2, 0, 3)"), ""))) << error;
  EXPECT_EQ(array.shape(), (std::vector<int64_t>{2, 0, 3}));
  ASSERT_TRUE(read(npy(dictionary("<f4", "(2L,)"), std::string(8, '\0'))));
  ASSERT_TRUE(read(npy(dictionary("<f4", "( 1 , 2 ,)"), std::string(8, '\0'))));

  // Column-major: [[0, 1, 2], [3, 4, 5]].
  std::string data = raw<int32_t>({0, 3, 1, 4, 2, 5});
  ASSERT_TRUE(read(npy(dictionary("<i4", "(2, 3)", "True"), data))) << error;
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(array.dataAs<int32_t>()[i], i);
  ASSERT_TRUE(read(npy(dictionary("<i4", "(0, 3)", "True"), ""))) << error;
  ASSERT_TRUE(read(npy(dictionary("<i4", "()", "True"), raw<int32_t>({9}))));
}

TEST_F(NpyRead, FortranOrderOfEverySize) {
  for (auto [descr, size] : {std::pair<const char *, int64_t>{"|i1", 1},
                             {"<f2", 2},
                             {"<f4", 4},
                             {"<f8", 8}}) {
    // Element (i, j, k) holds its row-major index in its first byte.
    std::string data(size * 2 * 3 * 4, '\0');
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 3; ++j)
        for (int k = 0; k < 4; ++k)
          data[size * (i + 2 * (j + 3 * k))] =
              static_cast<char>(k + 4 * (j + 3 * i));
    ASSERT_TRUE(read(npy(dictionary(descr, "(2, 3, 4)", "True"), data)))
        << error;
    for (int i = 0; i < 24; ++i)
      EXPECT_EQ(array.dataAs<char>()[i * size], i);
  }
}

TEST_F(NpyRead, BigEndian) {
  ASSERT_TRUE(read(npy(dictionary(">i4", "(2,)"),
                       std::string("\0\0\1\2\xFF\xFF\xFF\xFE", 8))));
  EXPECT_EQ(array.dataAs<int32_t>()[0], 258);
  EXPECT_EQ(array.dataAs<int32_t>()[1], -2);
  ASSERT_TRUE(read(npy(dictionary(">u2", "()"), "\x3F\x80"))) << error;
  EXPECT_EQ(*array.dataAs<uint16_t>(), 0x3F80);
  std::string both = std::string("\0\1\0\3\0\2\0\4", 8);
  ASSERT_TRUE(read(npy(dictionary(">f2", "(2, 2)", "True"), both))) << error;
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(array.dataAs<uint16_t>()[i], i + 1);
}

TEST_F(NpyRead, VersionsAndSpelling) {
  for (int version : {1, 2, 3})
    EXPECT_TRUE(
        read(npy(dictionary("<f4", "(1,)"), std::string(4, '\0'), version)))
        << error;
  EXPECT_TRUE(read(npy("  {\"shape\":(1,),\"descr\":\"<f4\",\n"
                       "\"fortran_order\":False}   \n",
                       "1234")))
      << error;
  for (int version : {0, 4, 255})
    refuse(npy(dictionary("<f4", "(1,)"), "1234", version),
           "unknown .npy format");
}

TEST_F(NpyRead, BadShapes) {
  auto shape = [&](const char *text, const char *part) {
    refuse(npy(dictionary("<f4", text), "1234"), part);
  };
  shape("(-1,)", "negative size");
  shape("(1)", "not a tuple");
  shape("1", "not a tuple");
  shape("(1, x)", "not a tuple");
  shape("(1.5,)", "in the shape");
  shape("(,)", "not a tuple of integers");
  shape("(1 1)", "in the shape");
  shape("(1,", "not a tuple of integers");
  shape("(9223372036854775808,)", "too large");
  shape("(99999999999999999999999,)", "too large");
  shape("(9223372036854775807,)", "product overflows");
  shape("(4294967296, 4294967296)", "product overflows");
  shape("(0, 4294967296, 4294967296)", "product overflows");
  shape("(2305843009213693951,)", "truncated: 4 bytes");
  std::string many = "(";
  for (int i = 0; i < 33; ++i)
    many += "1,";
  shape((many + ")").c_str(), "more than 32 dimensions");
}

TEST_F(NpyRead, BadHeaders) {
  auto text = [&](const std::string &header, const char *part) {
    refuse(npy(header, "1234"), part);
  };
  text("", "malformed .npy header");
  text("[]", "not a dictionary");
  text("{ ", "expected a string");
  text("{}", "is missing");
  text("{'descr': '<f4', 'shape': (1,)}", "is missing");
  text("{'descr': '<f4', 'descr': '<f4'}", "'descr' twice");
  text("{'what': 1}", "unknown key 'what'");
  text("{'descr' '<f4'}", "expected ':'");
  text("{'descr': '<f4' 'shape': (1,)}", "expected ','");
  text("{'descr': '<f4", "unterminated string");
  text("{'descr': \"<f4'", "unterminated string");
  text("{'de\\x73cr': '<f4'}", "unexpected character");
  text(std::string("{'de\0scr': '<f4'}", 16), "unexpected character");
  text(dictionary("<f4", "(1,)", "true"), "neither True nor False");
  text(dictionary("<f4", "(1,)", "1"), "neither True nor False");
  text(dictionary("<f4", "(1,)") + "x", "text after the dictionary");
}

TEST_F(NpyRead, BadFiles) {
  std::string good = npy(dictionary("<f4", "(2,)"), "12345678");
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(read(good.substr(0, length))) << length;
  refuse(good + "9", "trailing data: 9 bytes of data, the header says 8");
  refuse("\x93NUMPX" + good.substr(6), "not an .npy file");
  refuse("", "not an .npy file");
  std::string huge = good;
  huge[8] = huge[9] = '\xFF';
  refuse(huge, "truncated .npy header");
  std::string longer = npy(dictionary("<f4", "(2,)"), "12345678", 2);
  longer[10] = 2;
  refuse(longer, "too long");
  refuse(npy("", ""), "not a dictionary");

  EXPECT_FALSE(readNpy(folder.path("none"), array, error));
  EXPECT_FALSE(readNpy(folder.path(""), array, error));
  EXPECT_NE(error.find("not a regular file"), std::string::npos) << error;
  EXPECT_FALSE(readNpy("/dev/zero", array, error));
  EXPECT_FALSE(
      readNpy(folder.path("x.npy") + std::string("\0y", 2), array, error));
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(readNpy(folder.path("pipe"), array, error));
}

TEST_F(NpyRead, MutationsNeverCrash) {
  std::mt19937 random(20);
  std::string good = npy(dictionary(">f2", "(2, 3)", "True"), "0123456789ab");
  std::string header = good.substr(0, good.size() - 12);
  int accepted = 0;
  for (int i = 0; i < 5000; ++i)
    accepted += read(mutate(header, random) + "0123456789ab");
  // Some changes only affect white space or the order.
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 2000);
}

} // namespace
