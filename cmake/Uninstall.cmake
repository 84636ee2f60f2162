# ===- Uninstall.cmake - removes an installation ---------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# cmake -DPREFIX=DIR -P Uninstall.cmake
# Removes the files listed in DIR/share/posenc/manifest.txt, and the folders that
# are empty afterwards, except for DIR.

cmake_minimum_required(VERSION 3.21)
if(NOT PREFIX)
  message(FATAL_ERROR "expected -DPREFIX=DIR, the prefix of the installation")
endif()
get_filename_component(prefix "${PREFIX}" ABSOLUTE)
set(manifest "${prefix}/share/posenc/manifest.txt")
if(NOT EXISTS "${manifest}")
  message(FATAL_ERROR "no installation of Posenc in '${prefix}': "
                      "'${manifest}' not found")
endif()
file(STRINGS "${manifest}" files)
set(folders)
set(count 0)
foreach(file IN LISTS files)
  cmake_path(SET path NORMALIZE "${prefix}/${file}")
  cmake_path(IS_PREFIX prefix "${path}" is_inside)
  if(NOT is_inside)
    message(FATAL_ERROR "'${manifest}' lists '${file}', outside of the prefix")
  endif()
  if(EXISTS "${path}" OR IS_SYMLINK "${path}")
    file(REMOVE "${path}")
    math(EXPR count "${count} + 1")
  endif()
  cmake_path(GET path PARENT_PATH folder)
  while(NOT folder STREQUAL prefix)
    list(APPEND folders "${folder}")
    cmake_path(GET folder PARENT_PATH folder)
  endwhile()
endforeach()
# Removes the deepest folders first: in descending order, a folder comes after those
# within it.
list(REMOVE_DUPLICATES folders)
list(SORT folders ORDER DESCENDING)
foreach(folder IN LISTS folders)
  file(GLOB content LIST_DIRECTORIES true "${folder}/*" "${folder}/.*")
  if(NOT content AND IS_DIRECTORY "${folder}")
    file(REMOVE_RECURSE "${folder}")
  endif()
endforeach()
message(STATUS "removed ${count} files from ${prefix}")
