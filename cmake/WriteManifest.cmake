# ===- WriteManifest.cmake - list of installed files -----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# Runs at the end of an installation. Adds the installed files to
# share/posenc/manifest.txt in the prefix. Paths are relative to the prefix, so an
# installation can be moved.

# A wheel has a list of its own.
if(CMAKE_INSTALL_COMPONENT STREQUAL "Python")
  return()
endif()

set(posenc_root "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
set(posenc_manifest "${posenc_root}/share/posenc/manifest.txt")
set(posenc_files share/posenc/manifest.txt)
if(EXISTS "${posenc_manifest}")
  file(STRINGS "${posenc_manifest}" posenc_known)
  list(APPEND posenc_files ${posenc_known})
endif()
foreach(file IN LISTS CMAKE_INSTALL_MANIFEST_FILES)
  file(RELATIVE_PATH file "${CMAKE_INSTALL_PREFIX}" "${file}")
  list(APPEND posenc_files "${file}")
endforeach()
list(SORT posenc_files)
list(REMOVE_DUPLICATES posenc_files)
list(JOIN posenc_files "\n" posenc_files)
file(WRITE "${posenc_manifest}" "${posenc_files}\n")
