# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# POSENC_SOVERSION: the version of the interface in names of shared libraries. As
# long as MAJOR is 0, docs/abi.md promises the C headers within a minor version only.

set(POSENC_SOVERSION ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
  string(APPEND POSENC_SOVERSION .${PROJECT_VERSION_MINOR})
endif()
