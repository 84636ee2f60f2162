//===- Doors.cpp - the table of doors -------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Doors.h"

#include "Corpus.h"

#include "llvm/ADT/STLExtras.h"

using namespace posenc::fuzz;
using llvm::ArrayRef;

static std::string mutateJson(Random &random, ArrayRef<std::string> texts) {
  return mutateText(random, texts, jsonDictionary);
}

static std::string mutateModule(Random &random, ArrayRef<std::string> texts) {
  return mutateText(random, texts, mlirDictionary);
}

static std::string mutateModuleAlike(Random &random,
                                     ArrayRef<std::string> texts) {
  return mutateGraph(random, texts, mlirDictionary);
}

static std::vector<std::string> getModules() {
  std::vector<std::string> modules = getCorpus().texts;
  const std::vector<std::string> &stages = getCorpus().stages;
  modules.insert(modules.end(), stages.begin(), stages.end());
  return modules;
}

static std::vector<std::string> getGraphs() { return getCorpus().graphs; }

static constexpr Door kDoors[] = {
    {"config", openConfig, readConfigs, mutateJson},
    {"module", openModule, getModules, mutateModule},
    {"graph", openGraph, getGraphs, mutateModuleAlike},
    {"onnx", openOnnx, nullptr, mutateOnnx},
    {"pipeline", openPipeline, getPipelineSeeds, mutateModule},
    {"calls", openCalls, nullptr, nullptr},
    {"npy", openNpy, getNpySeeds, nullptr},
    {"safetensors", openSafetensors, getSafetensorsSeeds, mutateJson},
    {"tuning", openTuning, getTuningSeeds, mutateJson},
    {"cache", openCache, getCacheSeeds, nullptr},
    {"library", openLibrary, nullptr, nullptr},
    {"metadata", openMetadata, getMetadataSeeds, mutateJson},
};

ArrayRef<Door> posenc::fuzz::getDoors() { return kDoors; }

const Door *posenc::fuzz::findDoor(llvm::StringRef name) {
  const Door *door = llvm::find_if(
      kDoors, [&](const Door &door) { return door.name == name; });
  return door == std::end(kDoors) ? nullptr : door;
}
