//===- LoadedNames.cpp - The names under which files are loaded -*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoadedNames.h"

#include <algorithm>
#include <dlfcn.h>
#include <link.h>

using namespace posenc::runtime;

LoadedNames &LoadedNames::get() {
  // Never destroyed: a library may be closed by the destructor of a static
  // object.
  static LoadedNames *names = new LoadedNames;
  return *names;
}

const std::string &LoadedNames::chooseName(std::string path,
                                           const FileId &file) {
  size_t slash = path.rfind('/');
  while (true) {
    auto taken =
        std::find_if(entries.begin(), entries.end(),
                     [&](const Entry &entry) { return entry.name == path; });
    if (taken == entries.end()) {
      entries.push_back({std::move(path), file, 0});
      return entries.back().name;
    }
    if (taken->file == file)
      return taken->name;
    path.insert(slash, "/.");
  }
}

bool LoadedNames::isInUse(const FileId &file) const {
  return std::any_of(entries.begin(), entries.end(), [&](const Entry &entry) {
    return entry.file == file && entry.uses;
  });
}

void LoadedNames::forget(const FileId &file) {
  entries.erase(
      std::remove_if(entries.begin(), entries.end(),
                     [&](const Entry &entry) { return entry.file == file; }),
      entries.end());
}

void *LoadedNames::load(std::string path, const FileId &file,
                        const void *&inside) {
  std::lock_guard<std::mutex> lock(mutex);
  const std::string &name = chooseName(std::move(path), file);
  void *handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  struct link_map *map = nullptr;
  if (handle && ::dlinfo(handle, RTLD_DI_LINKMAP, &map)) {
    ::dlclose(handle);
    handle = nullptr;
  }
  if (!handle) {
    if (!isInUse(file))
      forget(file);
    return nullptr;
  }
  inside = map->l_ld;
  for (Entry &entry : entries)
    if (entry.file == file) {
      ++entry.uses;
      break;
    }
  return handle;
}

void LoadedNames::unload(void *handle, const FileId &file, const void *inside) {
  std::lock_guard<std::mutex> lock(mutex);
  ::dlclose(handle);
  for (Entry &entry : entries)
    if (entry.file == file) {
      --entry.uses;
      break;
    }
  if (isInUse(file))
    return;
  // Some libraries stay loaded for ever, and then their names do too. Asking
  // the loader by name instead would teach it the name.
  Dl_info info;
  if (::dladdr(inside, &info) && info.dli_fname)
    for (const Entry &entry : entries)
      if (entry.file == file && entry.name == info.dli_fname)
        return;
  forget(file);
}
