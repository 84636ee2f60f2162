//===- Loader.h - dlopen, declared weakly -------------------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_LOADER_H
#define POSENC_KERNEL_LOADER_H

/* Weak, because before glibc 2.34 these functions are not part of libc. */
extern void *dlopen(const char *file, int mode) __attribute__((weak));
extern void *dlsym(void *handle, const char *name) __attribute__((weak));
extern char *dlerror(void) __attribute__((weak));

#endif
