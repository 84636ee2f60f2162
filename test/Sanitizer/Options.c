/*===- Options.c - defaults of the address sanitizer ------------*- C -*-===*\
|*                                                                            *|
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.        *|
|* See LICENSE for license information.                                       *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Part of every executable of a sanitized build. The libraries of LLVM and   *|
|* MLIR that it loads are not sanitized, which some checks do not stand:      *|
|*                                                                            *|
|* - allow_user_poisoning: the allocators of LLVM's headers poison what they  *|
|*   have not given out. Where the header is compiled into this project that  *|
|*   is done, where it is part of the libraries its end is not.               *|
|* - detect_container_overflow: the same for the capacity of containers.      *|
|* - detect_leaks: contexts and registries live to the end of the process.    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

const char *__asan_default_options(void);

const char *__asan_default_options(void) {
  return "allow_user_poisoning=0:detect_container_overflow=0:detect_leaks=0";
}

const char *__ubsan_default_options(void);

const char *__ubsan_default_options(void) { return "print_stacktrace=1"; }
