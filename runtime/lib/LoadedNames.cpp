//===- LoadedNames.cpp - The names of the loaded files --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoadedNames.h"

#include <algorithm>
#include <cassert>
#include <dlfcn.h>
#include <link.h>

using namespace posenc::runtime;

LoadedNames &LoadedNames::get() {
  // Never destroyed, since the destructor of a static object may close a
  // library.
  static LoadedNames *instance = new LoadedNames;
  return *instance;
}

const std::string &LoadedNames::chooseName(std::string path,
                                           const FileId &file) {
  size_t slash = path.rfind('/');
  assert(slash != std::string::npos && "the path is absolute");
  while (true) {
    auto taken =
        std::find_if(names.begin(), names.end(), [&](const LoadedName &loaded) {
          return loaded.name == path;
        });
    if (taken == names.end()) {
      names.push_back({std::move(path), file, 0});
      return names.back().name;
    }
    if (taken->file == file)
      return taken->name;
    path.insert(slash, "/.");
  }
}

bool LoadedNames::isInUse(const FileId &file) const {
  return std::any_of(names.begin(), names.end(), [&](const LoadedName &loaded) {
    return loaded.file == file && loaded.numHandles;
  });
}

void LoadedNames::forget(const FileId &file) {
  names.erase(std::remove_if(names.begin(), names.end(),
                             [&](const LoadedName &loaded) {
                               return loaded.file == file;
                             }),
              names.end());
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
  for (LoadedName &loaded : names)
    if (loaded.file == file) {
      ++loaded.numHandles;
      break;
    }
  return handle;
}

void LoadedNames::unload(void *handle, const FileId &file, const void *inside) {
  std::lock_guard<std::mutex> lock(mutex);
  ::dlclose(handle);
  for (LoadedName &loaded : names)
    if (loaded.file == file) {
      assert(loaded.numHandles && "a file is unloaded once per handle");
      --loaded.numHandles;
      break;
    }
  if (isInUse(file))
    return;
  // A library that is never unloaded keeps its name. dladdr() tells; dlopen()
  // with RTLD_NOLOAD would make the name known.
  Dl_info info;
  if (::dladdr(inside, &info) && info.dli_fname)
    for (const LoadedName &loaded : names)
      if (loaded.file == file && loaded.name == info.dli_fname)
        return;
  forget(file);
}
