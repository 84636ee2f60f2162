//===- Weights.h - weights of a library that are in a file --------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_WEIGHTS_H
#define POSENC_KERNEL_WEIGHTS_H

#include "Report.h"
#include "Sha256.h"

/* Declared here, as headers of libc are not available for each target. */
extern int open(const char *path, int flags, ...);
extern int close(int file);
extern long read(int file, void *to, unsigned long size);
extern long lseek(int file, long offset, int origin);
extern long readlink(const char *path, char *buffer, unsigned long size);
extern void *mmap(void *address, unsigned long size, int protection, int flags,
                  int file, long offset);
extern int munmap(void *address, unsigned long size);
extern int sched_yield(void);
extern int *__errno_location(void);

/* Parts of Elf64_Phdr and dl_phdr_info. */
struct Segment {
  uint32_t type, flags;
  uint64_t offset, address, physical, fileBytes, bytes, align;
};
struct LoadedFile {
  uint64_t base;
  const char *name; /* "" for the program */
  const struct Segment *segments;
  uint16_t numSegments;
};
extern int dl_iterate_phdr(int (*visit)(struct LoadedFile *file,
                                        unsigned long size, void *data),
                           void *data);

/* The file of a library, as the compiler wrote it. */
struct WeightsFile {
  const char *name;         /* of the file beside the library */
  const uint8_t *hash;      /* SHA-256 of the header */
  const int64_t *positions; /* of the tensors in the file */
  const char **tensors;     /* their addresses, which kernels read */
  int64_t headerBytes, bytes, numTensors;
};

enum { kMaxWeightsPath = 4096 };

/* The open file of this library. */
static struct {
  int32_t lock, isOpen;
  void *data;
  unsigned long bytes;
  char path[kMaxWeightsPath];
} weights;

/* Whether kernels may read weights. */
static int hasWeights(void) {
  return __atomic_load_n(&weights.isOpen, __ATOMIC_ACQUIRE);
}

static int contains(const struct LoadedFile *file, uint64_t address) {
  const uint32_t load = 1; /* PT_LOAD */
  for (int i = 0; i < file->numSegments; ++i) {
    const struct Segment *segment = &file->segments[i];
    uint64_t begin = file->base + segment->address;
    if (segment->type == load && address >= begin &&
        address - begin < segment->bytes)
      return 1;
  }
  return 0;
}

/* Writes the path of the file that has this code, without a final 0, to `path`
 * if it is that. Returns 1 if so, which ends the search. */
static int findOwnFile(struct LoadedFile *file, unsigned long size,
                       void *path) {
  (void)size;
  if (!contains(file, (uint64_t)&weights))
    return 0;
  char *to = path;
  if (!*file->name) {
    long count = readlink("/proc/self/exe", to, kMaxWeightsPath - 1);
    to[count < 0 ? 0 : count] = 0;
    return 1;
  }
  int i = 0;
  for (; file->name[i] && i < kMaxWeightsPath - 1; ++i)
    to[i] = file->name[i];
  to[i] = 0;
  return 1;
}

/* Appends a text to a path of `end` bytes. Returns the bytes of both, or -1 if
 * they are too many. */
static int appendPath(char *path, int end, const char *text) {
  for (; *text && end < kMaxWeightsPath - 1; ++end)
    path[end] = *text++;
  path[end] = 0;
  return *text ? -1 : end;
}

/* Sets the path of a file: `path`, the file of this name in the folder `path`
 * if it ends with a slash, or that beside this library for NULL. Returns
 * whether it is short enough. */
static int setPath(char *to, const char *path, const char *name) {
  int end = 0;
  if (path) {
    end = appendPath(to, 0, path);
    if (end <= 0 || to[end - 1] != '/')
      return end >= 0;
  } else {
    dl_iterate_phdr(findOwnFile, to);
    for (int i = 0; to[i]; ++i)
      if (to[i] == '/')
        end = i + 1;
  }
  return appendPath(to, end, name) >= 0;
}

static int isSameText(const char *a, const char *b) {
  while (*a && *a == *b) {
    ++a;
    ++b;
  }
  return *a == *b;
}

/* Writes a message about a path, and returns the status of an error. */
static int32_t failWeights(struct Call *call, const char *path,
                           const char *text) {
  for (const char *part = path; *part; ++part) {
    /* Control characters would change what a terminal shows. */
    char c[2] = {(unsigned char)*part < 0x20 || *part == 0x7f ? '?' : *part, 0};
    putText(call, c);
  }
  putText(call, text);
  return kEntryWeights;
}

static int32_t failSystem(struct Call *call, const char *path,
                          const char *text) {
  int error = *__errno_location();
  failWeights(call, path, text);
  if (error == 2) {
    putText(call, "there is no such file");
  } else if (error == 13) {
    putText(call, "permission denied");
  } else {
    putText(call, "error ");
    putNumber(call, error);
    putText(call, " of the system");
  }
  return kEntryWeights;
}

/* Checks a mapped file and gives kernels the addresses of its tensors. */
static int32_t useWeights(struct Call *call, const struct WeightsFile *file,
                          const char *path, const uint8_t *data) {
  uint8_t hash[32];
  hashSha256(data, (uint64_t)file->headerBytes, hash);
  for (int i = 0; i < 32; ++i)
    if (hash[i] != file->hash[i])
      return failWeights(call, path,
                         ": the header is not that of the library's weights; "
                         "the compiler wrote another file with the library");
  for (int64_t i = 0; i < file->numTensors; ++i)
    file->tensors[i] = (const char *)data + file->positions[i];
  return kEntryOk;
}

static int32_t mapWeights(struct Call *call, const struct WeightsFile *file,
                          const char *path) {
  /* O_NONBLOCK: opening a pipe would wait for its other end. */
  const int readOnly = 0, nonBlock = 04000, closeOnExec = 02000000;
  int descriptor = open(path, readOnly | nonBlock | closeOnExec);
  if (descriptor < 0)
    return failSystem(call, path, ": cannot be opened: ");
  const int end = 2; /* SEEK_END */
  long bytes = lseek(descriptor, 0, end);
  /* A pipe has no end, and a folder cannot be read. */
  if (bytes < 0 || read(descriptor, NULL, 0) < 0) {
    close(descriptor);
    return failWeights(call, path, ": is not a regular file");
  }
  if (bytes != file->bytes) {
    failWeights(call, path, ": has ");
    putNumber(call, bytes);
    putText(call, " bytes, but the library's weights have ");
    putNumber(call, file->bytes);
    close(descriptor);
    return kEntryWeights;
  }
  const int readable = 1, shared = 1; /* PROT_READ, MAP_SHARED */
  void *data =
      mmap(NULL, (unsigned long)bytes, readable, shared, descriptor, 0);
  close(descriptor);
  if (data == (void *)-1)
    return failSystem(call, path, ": cannot be mapped: ");
  int32_t code = useWeights(call, file, path, data);
  if (code) {
    munmap(data, (unsigned long)bytes);
    return code;
  }
  weights.data = data;
  weights.bytes = (unsigned long)bytes;
  __atomic_store_n(&weights.isOpen, 1, __ATOMIC_RELEASE);
  return kEntryOk;
}

static int32_t openLocked(struct Call *call, const struct WeightsFile *file,
                          const char *path) {
  static char other[kMaxWeightsPath];
  if (weights.isOpen && !path)
    return kEntryOk;
  char *resolved = weights.isOpen ? other : weights.path;
  if (!setPath(resolved, path, file->name))
    return failWeights(call, "", "the path of the weights is too long");
  if (!weights.isOpen)
    return mapWeights(call, file, resolved);
  if (isSameText(resolved, weights.path))
    return kEntryOk;
  failWeights(call, resolved,
              ": the library has opened its weights already, from ");
  return failWeights(call, weights.path, "");
}

#endif
