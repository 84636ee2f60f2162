# ===- PosencAddKernel.cmake - compiled kernels as a CMake target ----------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# posenc_add_kernel(NAME INPUT <file.json|file.mlir|file.onnx> [STATIC]
#                   [TARGETS <cpu>...] [DTYPE <type>] [PAIRING <pairing>]
#                   [K_CACHE <kind>] [CACHE_DTYPE <type>] [DECODE_TOKENS <n>]
#                   [CACHE_SCALES <kind>]
#                   [ROPE_LENGTH <n>] [QK_NORM] [INDEX_TYPE <type>] [LSE]
#                   [ROTATION <kind>] [CAUSAL <kind>]
#                   [KERNELS <function>...] [THREADS none] [TUNING <file>]
#                   [STACK_LIMIT <bytes>] [RAISE yes|no] [ASSERT check|drop]
#                   [WEIGHTS file|embed] [REPORT <file.html>])
#
# Adds the imported library NAME, which is compiled from INPUT with
# posenc-compile, and again when INPUT, TUNING or the compiler changes. Targets
# that link it can include its header NAME.h and call NAME_<function>. The options
# are those of posenc-compile. A library for several TARGETS picks the best
# version at load time.
function(posenc_add_kernel name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "STATIC;QK_NORM;LSE"
    "INPUT;DTYPE;PAIRING;K_CACHE;CACHE_DTYPE;CACHE_SCALES;DECODE_TOKENS;ROPE_LENGTH;INDEX_TYPE;ROTATION;CAUSAL;THREADS;TUNING;STACK_LIMIT;RAISE;ASSERT;WEIGHTS;REPORT"
    "TARGETS;KERNELS")
  if(ARG_UNPARSED_ARGUMENTS OR ARG_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "posenc_add_kernel(${name}): unexpected "
      "arguments '${ARG_UNPARSED_ARGUMENTS}${ARG_KEYWORDS_MISSING_VALUES}'")
  endif()
  if(NOT name MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
    message(FATAL_ERROR "posenc_add_kernel(${name}): expected a C identifier "
      "as NAME, the prefix of the library's functions")
  endif()
  if(NOT ARG_INPUT)
    message(FATAL_ERROR "posenc_add_kernel(${name}): missing INPUT")
  endif()
  if(CMAKE_CROSSCOMPILING AND NOT ARG_TARGETS)
    message(FATAL_ERROR "posenc_add_kernel(${name}): TARGETS is required "
      "when cross-compiling")
  endif()

  get_filename_component(input "${ARG_INPUT}" ABSOLUTE)
  # A separate folder, so that the include path contains only this header.
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/posenc/${name}")
  file(MAKE_DIRECTORY "${folder}")
  set(header "${folder}/${name}.h")
  set(kind SHARED)
  set(library "${folder}/lib${name}.so")
  if(ARG_STATIC)
    set(kind STATIC)
    set(library "${folder}/lib${name}.a")
  endif()
  set(options)
  foreach(target IN LISTS ARG_TARGETS)
    list(APPEND options "--target=${target}")
  endforeach()
  foreach(kernel IN LISTS ARG_KERNELS)
    list(APPEND options "--kernels=${kernel}")
  endforeach()
  foreach(option DTYPE PAIRING K_CACHE CACHE_DTYPE CACHE_SCALES DECODE_TOKENS
          ROPE_LENGTH INDEX_TYPE ROTATION CAUSAL THREADS STACK_LIMIT RAISE ASSERT WEIGHTS)
    if(DEFINED ARG_${option})
      string(TOLOWER ${option} flag)
      string(REPLACE "_" "-" flag ${flag})
      list(APPEND options "--${flag}=${ARG_${option}}")
    endif()
  endforeach()
  if(ARG_QK_NORM)
    list(APPEND options --qk-norm)
  endif()
  if(ARG_LSE)
    list(APPEND options --lse)
  endif()
  set(tuning)
  if(ARG_TUNING)
    get_filename_component(tuning "${ARG_TUNING}" ABSOLUTE)
    list(APPEND options "--tuning=${tuning}")
  endif()
  if(ARG_REPORT)
    get_filename_component(report "${ARG_REPORT}" ABSOLUTE
      BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
    list(APPEND options "--report=${report}")
  endif()
  add_custom_command(OUTPUT "${library}" "${header}"
    COMMAND Posenc::posenc-compile "${input}" -o "${library}" ${options}
    DEPENDS "${input}" ${tuning} Posenc::posenc-compile Posenc::Posenc
    COMMENT "Compiling kernels ${name}"
    VERBATIM)
  add_custom_target(${name}_kernels DEPENDS "${library}" "${header}")

  add_library(${name} ${kind} IMPORTED GLOBAL)
  add_dependencies(${name} ${name}_kernels)
  set_target_properties(${name} PROPERTIES
    IMPORTED_LOCATION "${library}"
    INTERFACE_INCLUDE_DIRECTORIES "${folder}")
  if(NOT ARG_STATIC)
    set_target_properties(${name} PROPERTIES IMPORTED_SONAME "lib${name}.so")
  elseif(NOT ARG_THREADS)
    # Debian's libgomp1 has the library only under its soname.
    find_library(POSENC_GOMP NAMES gomp libgomp.so.1)
    set_target_properties(${name} PROPERTIES
      INTERFACE_LINK_LIBRARIES "$<IF:$<BOOL:${POSENC_GOMP}>,${POSENC_GOMP},gomp>")
  endif()
endfunction()
