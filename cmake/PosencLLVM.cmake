# ===- PosencLLVM.cmake - the LLVM to build with ----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Must precede project(). POSENC_LLVM, a cache variable or else an environment
# variable, is the prefix of an LLVM 22.1 with MLIR, Clang and LLD. Its Clang compiles
# the project, unless CMAKE_C_COMPILER and CMAKE_CXX_COMPILER name other compilers.

set(prefix /usr/lib/llvm-22)
if(NOT "$ENV{POSENC_LLVM}" STREQUAL "")
  set(prefix "$ENV{POSENC_LLVM}")
endif()
set(POSENC_LLVM "${prefix}" CACHE PATH "Prefix of LLVM with MLIR, Clang and LLD")
unset(prefix)

# What CMake has found cannot be moved to another LLVM.
if(NOT DEFINED POSENC_CONFIGURED_LLVM)
  set(POSENC_CONFIGURED_LLVM "${POSENC_LLVM}" CACHE INTERNAL "")
elseif(NOT POSENC_CONFIGURED_LLVM STREQUAL POSENC_LLVM)
  message(FATAL_ERROR
    "A build folder keeps its LLVM: delete it or use another (make BUILD=DIR).\n"
    "  folder: ${CMAKE_BINARY_DIR}\n"
    "  its LLVM: ${POSENC_CONFIGURED_LLVM}\n"
    "  not: ${POSENC_LLVM}")
endif()

if(NOT CMAKE_C_COMPILER AND EXISTS "${POSENC_LLVM}/bin/clang")
  set(CMAKE_C_COMPILER "${POSENC_LLVM}/bin/clang" CACHE FILEPATH "C compiler")
endif()
if(NOT CMAKE_CXX_COMPILER AND EXISTS "${POSENC_LLVM}/bin/clang++")
  set(CMAKE_CXX_COMPILER "${POSENC_LLVM}/bin/clang++" CACHE FILEPATH
      "C++ compiler")
endif()
