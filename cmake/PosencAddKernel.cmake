# ===- PosencAddKernel.cmake - kernels as a target of CMake ----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# posenc_add_kernel(NAME INPUT <file.json|file.mlir> [STATIC]
#                   [TARGETS <cpu>...] [DTYPE <type>] [PAIRING <pairing>]
#                   [K_CACHE <kind>] [DECODE_TOKENS <n>] [QK_NORM]
#                   [KERNELS <function>...] [THREADS none] [TUNING <file>]
#                   [STACK_LIMIT <bytes>])
#
# Compiles INPUT with posenc-compile when it, TUNING or the compiler changes,
# and adds the imported library NAME with the folder of its header NAME.h: a
# target that links it calls NAME_<function>. The options are those of
# posenc-compile; for several TARGETS the library picks at run time.
function(posenc_add_kernel name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "STATIC;QK_NORM"
    "INPUT;DTYPE;PAIRING;K_CACHE;DECODE_TOKENS;THREADS;TUNING;STACK_LIMIT"
    "TARGETS;KERNELS")
  if(ARG_UNPARSED_ARGUMENTS OR ARG_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "posenc_add_kernel(${name}): cannot make sense of "
      "'${ARG_UNPARSED_ARGUMENTS}${ARG_KEYWORDS_MISSING_VALUES}'")
  endif()
  if(NOT name MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
    message(FATAL_ERROR "posenc_add_kernel(${name}): the name begins those of "
      "C functions; '${name}' cannot")
  endif()
  if(NOT ARG_INPUT)
    message(FATAL_ERROR "posenc_add_kernel(${name}): no INPUT")
  endif()
  if(CMAKE_CROSSCOMPILING AND NOT ARG_TARGETS)
    message(FATAL_ERROR "posenc_add_kernel(${name}): the default is code for "
      "this machine: give TARGETS")
  endif()

  get_filename_component(input "${ARG_INPUT}" ABSOLUTE)
  # A folder of its own, so that nothing else is on the include path.
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
  foreach(option DTYPE PAIRING K_CACHE DECODE_TOKENS THREADS STACK_LIMIT)
    if(DEFINED ARG_${option})
      string(TOLOWER ${option} flag)
      string(REPLACE "_" "-" flag ${flag})
      list(APPEND options "--${flag}=${ARG_${option}}")
    endif()
  endforeach()
  if(ARG_QK_NORM)
    list(APPEND options --qk-norm)
  endif()
  set(tuning)
  if(ARG_TUNING)
    get_filename_component(tuning "${ARG_TUNING}" ABSOLUTE)
    list(APPEND options "--tuning=${tuning}")
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
    # Its file name too: Debian's libgomp1 has no other.
    find_library(POSENC_GOMP NAMES gomp libgomp.so.1)
    set_target_properties(${name} PROPERTIES
      INTERFACE_LINK_LIBRARIES "$<IF:$<BOOL:${POSENC_GOMP}>,${POSENC_GOMP},gomp>")
  endif()
endfunction()
