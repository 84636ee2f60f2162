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
extern int openat(int folder, const char *path, int flags, ...);
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

/* A file of the model that has weights which are in no other file. */
struct ModelFile {
  const char *name;    /* a path below the folder of the library's weights */
  const uint8_t *hash; /* of samples of its tensors, as hashSamples() has it */
  int64_t bytes;
  void *data; /* where it is mapped, or NULL */
};

/* The file of a library, as the compiler wrote it. */
struct WeightsFile {
  const char *name;         /* of the file beside the library */
  const uint8_t *hash;      /* SHA-256 of the header */
  const char **tensors;     /* addresses of the tensors, which kernels read */
  const int64_t *positions; /* of the tensors in their files */
  const int64_t *sizes;     /* bytes of the tensors */
  const int64_t *files;     /* 0 for this file, i + 1 for modelFiles[i] */
  struct ModelFile *modelFiles;
  int64_t headerBytes, bytes, numTensors, numModelFiles;
};

enum { kMaxWeightsPath = 4096, kSampleBytes = 512 };

/* The open file of this library. */
static struct {
  int32_t lock, isOpen;
  const struct WeightsFile *file;
  void *data;
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

/* Maps an open file for reading, which must have `bytes` bytes, and closes it.
 * `owner` completes the message about another size. */
static int32_t mapFile(struct Call *call, const char *path, int descriptor,
                       int64_t bytes, const char *owner, void **data) {
  const int end = 2; /* SEEK_END */
  long found = lseek(descriptor, 0, end);
  /* A pipe has no end, and a folder cannot be read. */
  if (found < 0 || read(descriptor, NULL, 0) < 0) {
    close(descriptor);
    return failWeights(call, path, ": is not a regular file");
  }
  if (found != bytes) {
    failWeights(call, path, ": has ");
    putNumber(call, found);
    putText(call, owner);
    putNumber(call, bytes);
    close(descriptor);
    return kEntryWeights;
  }
  const int readable = 1, shared = 1; /* PROT_READ, MAP_SHARED */
  void *memory =
      mmap(NULL, (unsigned long)bytes, readable, shared, descriptor, 0);
  close(descriptor);
  if (memory == (void *)-1)
    return failSystem(call, path, ": cannot be mapped: ");
  *data = memory;
  return kEntryOk;
}

/* O_NONBLOCK: opening a pipe would wait for its other end. */
enum { kReadOnly = 04000 | 02000000 /* O_NONBLOCK | O_CLOEXEC */ };

/* Opens the file `name` below the folder that ends at the last slash of `path`.
 * Neither `name` nor a link in it can lead out of the folder. */
static int openBelow(const char *path, const char *name) {
  /* O_PATH | O_CLOEXEC, O_DIRECTORY and O_NOFOLLOW */
  const int folder = 010000000 | 02000000;
#if defined(__aarch64__)
  const int isFolder = 040000, isNoLink = 0100000;
#else
  const int isFolder = 0200000, isNoLink = 0400000;
#endif
  static char part[kMaxWeightsPath];
  int end = 0;
  for (int i = 0; path[i]; ++i)
    if (path[i] == '/')
      end = i + 1;
  for (int i = 0; i < end; ++i)
    part[i] = path[i];
  part[end] = 0;
  int descriptor = open(end ? part : ".", folder | isFolder);
  while (descriptor >= 0) {
    int size = 0;
    for (; name[size] && name[size] != '/' && size < kMaxWeightsPath - 1;
         ++size)
      part[size] = name[size];
    part[size] = 0;
    int isLast = !name[size];
    int leaves = size == 0 || isSameText(part, ".") || isSameText(part, "..");
    int parent = descriptor;
    descriptor =
        leaves ? -1
               : openat(parent, part,
                        isNoLink | (isLast ? kReadOnly : folder | isFolder));
    close(parent);
    if (leaves)
      *__errno_location() = 22; /* EINVAL */
    if (isLast)
      break;
    name += size + 1;
  }
  return descriptor;
}

/* Computes the hash of samples of the tensors in a model's file. It begins as
 * zeros; each tensor in turn makes it the SHA-256 hash of the hash so far, the
 * tensor's first bytes and its last bytes. */
static void hashSamples(const struct WeightsFile *file, int64_t number,
                        const uint8_t *data, uint8_t hash[32]) {
  uint8_t text[32 + 2 * kSampleBytes];
  for (int i = 0; i < 32; ++i)
    hash[i] = 0;
  for (int64_t i = 0; i < file->numTensors; ++i) {
    if (file->files[i] != number)
      continue;
    const uint8_t *tensor = data + file->positions[i];
    int64_t bytes = file->sizes[i];
    int64_t count = bytes < kSampleBytes ? bytes : kSampleBytes;
    for (int j = 0; j < 32; ++j)
      text[j] = hash[j];
    for (int64_t j = 0; j < count; ++j) {
      text[32 + j] = tensor[j];
      text[32 + count + j] = tensor[bytes - count + j];
    }
    hashSha256(text, (uint64_t)(32 + 2 * count), hash);
  }
}

static int isSameHash(const uint8_t *a, const uint8_t *b) {
  for (int i = 0; i < 32; ++i)
    if (a[i] != b[i])
      return 0;
  return 1;
}

/* Maps a file of the model, which is below the folder of the weights. */
static int32_t mapModelFile(struct Call *call, const struct WeightsFile *file,
                            int64_t number, const char *path) {
  static char full[kMaxWeightsPath];
  struct ModelFile *model = &file->modelFiles[number - 1];
  int end = 0;
  for (int i = 0; path[i]; ++i) {
    full[i] = path[i];
    if (path[i] == '/')
      end = i + 1;
  }
  if (appendPath(full, end, model->name) < 0)
    return failWeights(call, "", "the path of the model's data is too long");
  int descriptor = openBelow(path, model->name);
  if (descriptor < 0) {
    int error = *__errno_location();
    if (error == 40 || error == 20) /* ELOOP, ENOTDIR */
      return failWeights(call, full,
                         ": cannot be opened: a part of the path below the "
                         "folder of the weights is a symbolic link, or no "
                         "folder");
    return failSystem(call, full, ": cannot be opened: ");
  }
  int32_t code =
      mapFile(call, full, descriptor, model->bytes,
              " bytes, but the model's file with weights has ", &model->data);
  if (code)
    return code;
  uint8_t hash[32];
  hashSamples(file, number, model->data, hash);
  if (isSameHash(hash, model->hash))
    return kEntryOk;
  return failWeights(call, full,
                     ": the weights are not those of the library; it was "
                     "compiled with another file of the model");
}

static void unmapWeights(const struct WeightsFile *file, void *data) {
  munmap(data, (unsigned long)file->bytes);
  for (int64_t i = 0; i < file->numModelFiles; ++i) {
    struct ModelFile *model = &file->modelFiles[i];
    if (model->data)
      munmap(model->data, (unsigned long)model->bytes);
    model->data = NULL;
  }
}

/* Checks the mapped file, maps those of the model, and gives kernels the
 * addresses of tensors. */
static int32_t useWeights(struct Call *call, const struct WeightsFile *file,
                          const char *path, const uint8_t *data) {
  uint8_t hash[32];
  hashSha256(data, (uint64_t)file->headerBytes, hash);
  if (!isSameHash(hash, file->hash))
    return failWeights(call, path,
                       ": the header is not that of the library's weights; "
                       "the compiler wrote another file with the library");
  for (int64_t i = 0; i < file->numModelFiles; ++i) {
    int32_t code = mapModelFile(call, file, i + 1, path);
    if (code)
      return code;
  }
  for (int64_t i = 0; i < file->numTensors; ++i) {
    int64_t number = file->files[i];
    const char *begin =
        number ? file->modelFiles[number - 1].data : (const char *)data;
    file->tensors[i] = begin + file->positions[i];
  }
  return kEntryOk;
}

static int32_t mapWeights(struct Call *call, const struct WeightsFile *file,
                          const char *path) {
  int descriptor = open(path, kReadOnly);
  if (descriptor < 0)
    return failSystem(call, path, ": cannot be opened: ");
  void *data;
  int32_t code = mapFile(call, path, descriptor, file->bytes,
                         " bytes, but the library's weights have ", &data);
  if (code)
    return code;
  code = useWeights(call, file, path, data);
  if (code) {
    unmapWeights(file, data);
    return code;
  }
  weights.file = file;
  weights.data = data;
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
