//===- Vulkan.cpp - Test fixture for Vulkan devices -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Vulkan.h"

#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Target/SPIRV/Serialization.h"

using namespace posenc;
using namespace posenc::test;

Words posenc::test::assemble(const std::string &text) {
  mlir::MLIRContext context;
  context.loadDialect<mlir::spirv::SPIRVDialect>();
  mlir::ParserConfig config(&context);
  auto module = mlir::parseSourceString<mlir::spirv::ModuleOp>(text, config);
  llvm::SmallVector<uint32_t> binary;
  if (!module || failed(mlir::spirv::serialize(*module, binary))) {
    ADD_FAILURE() << "cannot assemble the module:\n" << text;
    return {};
  }
  return {binary.begin(), binary.end()};
}

Words posenc::test::addKernel(const std::string &type) {
  std::string text = R"(
spirv.module Logical GLSL450 requires #spirv.vce<v1.0, [CAPABILITIES], [SPV_KHR_storage_buffer_storage_class]> {
  spirv.GlobalVariable @id built_in("GlobalInvocationId") : !spirv.ptr<vector<3xi32>, Input>
  spirv.GlobalVariable @a bind(0, 0) : !spirv.ptr<ARRAY, StorageBuffer>
  spirv.GlobalVariable @b bind(0, 1) : !spirv.ptr<ARRAY, StorageBuffer>
  spirv.GlobalVariable @out bind(0, 2) : !spirv.ptr<ARRAY, StorageBuffer>
  spirv.GlobalVariable @push : !spirv.ptr<!spirv.struct<(i32 [0]), Block>, PushConstant>
  spirv.func @k() "None" {
    %zero = spirv.Constant 0 : i32
    %id = spirv.mlir.addressof @id : !spirv.ptr<vector<3xi32>, Input>
    %ids = spirv.Load "Input" %id : vector<3xi32>
    %i = spirv.CompositeExtract %ids[0 : i32] : vector<3xi32>
    %push = spirv.mlir.addressof @push : !spirv.ptr<!spirv.struct<(i32 [0]), Block>, PushConstant>
    %np = spirv.AccessChain %push[%zero] : !spirv.ptr<!spirv.struct<(i32 [0]), Block>, PushConstant>, i32 -> !spirv.ptr<i32, PushConstant>
    %n = spirv.Load "PushConstant" %np : i32
    %inside = spirv.ULessThan %i, %n : i32
    spirv.mlir.selection {
      spirv.BranchConditional %inside, ^then, ^end
    ^then:
      %a = spirv.mlir.addressof @a : !spirv.ptr<ARRAY, StorageBuffer>
      %b = spirv.mlir.addressof @b : !spirv.ptr<ARRAY, StorageBuffer>
      %out = spirv.mlir.addressof @out : !spirv.ptr<ARRAY, StorageBuffer>
      %pa = spirv.AccessChain %a[%zero, %i] : !spirv.ptr<ARRAY, StorageBuffer>, i32, i32 -> !spirv.ptr<TYPE, StorageBuffer>
      %pb = spirv.AccessChain %b[%zero, %i] : !spirv.ptr<ARRAY, StorageBuffer>, i32, i32 -> !spirv.ptr<TYPE, StorageBuffer>
      %po = spirv.AccessChain %out[%zero, %i] : !spirv.ptr<ARRAY, StorageBuffer>, i32, i32 -> !spirv.ptr<TYPE, StorageBuffer>
      %x = spirv.Load "StorageBuffer" %pa : TYPE
      %y = spirv.Load "StorageBuffer" %pb : TYPE
      %z = spirv.ADD %x, %y : TYPE
      spirv.Store "StorageBuffer" %po, %z : TYPE
      spirv.Branch ^end
    ^end:
      spirv.mlir.merge
    }
    spirv.Return
  }
  spirv.EntryPoint "GLCompute" @k, @id
  spirv.ExecutionMode @k "LocalSize", 64, 1, 1
})";
  bool wide = type == "f64" || type == "i64";
  auto replace = [&](const std::string &from, const std::string &to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;)
      text.replace(at, from.size(), to);
  };
  replace("CAPABILITIES", type == "f64"   ? "Shader, Float64"
                          : type == "i64" ? "Shader, Int64"
                                          : "Shader");
  replace("ARRAY", "!spirv.struct<(!spirv.rtarray<TYPE, stride=" +
                       std::string(wide ? "8" : "4") + "> [0]), Block>");
  replace("TYPE", type);
  replace("ADD", type[0] == 'f' ? "FAdd" : "IAdd");
  return assemble(text);
}

void VulkanTest::SetUp() {
  uint32_t count = 0;
  if (posenc_vulkan_count_devices(&count))
    GTEST_SKIP() << posenc_last_error();
  if (!count)
    GTEST_SKIP() << "no Vulkan device";
  posenc_vulkan_device *opened = nullptr;
  ASSERT_EQ(posenc_vulkan_open(0, &opened), POSENC_OK) << posenc_last_error();
  device.reset(opened);
}

Buffer VulkanTest::createBuffer(uint64_t bytes) {
  posenc_vulkan_buffer *buffer = nullptr;
  EXPECT_EQ(posenc_vulkan_create_buffer(device.get(), bytes, &buffer),
            POSENC_OK)
      << posenc_last_error();
  return Buffer(buffer);
}

Module VulkanTest::createModule(const Words &words) {
  auto module = std::make_unique<runtime::VulkanModule>(device->device);
  EXPECT_EQ(module->create(words.data(), words.size()), POSENC_OK)
      << posenc_last_error();
  return module;
}

Kernel VulkanTest::createKernel(const Module &module, const char *name,
                                uint32_t numBuffers, uint32_t pushBytes) {
  auto kernel = std::make_unique<runtime::VulkanKernel>(module->device);
  EXPECT_EQ(kernel->create(*module, name, numBuffers, pushBytes), POSENC_OK)
      << posenc_last_error();
  return kernel;
}
