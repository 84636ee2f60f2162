//===- KernelAttrs.td - how a kernel is divided and called -*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_KERNELATTRS_TD
#define POSENC_IR_KERNELATTRS_TD

include "posenc/IR/AbiAttrs.td"

/// The values are those of PosencTaskCount in the kernel support library.
def Posenc_TasksBy : Posenc_Enum<"TasksBy",
    "the tensors whose bytes determine the number of tasks", [
  I32EnumCase<"Outputs", 1, "outputs">,
  I32EnumCase<"Inputs", 2, "inputs">,
  I32EnumCase<"All", 3, "all">
]>;
def Posenc_TasksByAttr
    : EnumAttr<PosencDialect, Posenc_TasksBy, "tasks_by"> {
  let assemblyFormat = "`<` $value `>`";
}

/// Parameters of `#posenc.kernel`, with a description for the dialect's page.
class Posenc_TasksByParameter<string text> : EnumParameter<Posenc_TasksBy> {
  let summary = text;
  let defaultValue = "::mlir::posenc::TasksBy::Outputs";
}
class Posenc_Flag<string text> : DefaultValuedParameter<"bool", "false", text>;
class Posenc_OptionalList<string type, string text>
    : OptionalParameter<"::mlir::" # type, text>;

def Posenc_KernelAttr : Posenc_Attr<"Kernel", "kernel"> {
  let summary = "how the work of a kernel is divided, and what it is passed";
  let description = [{
    The value of `posenc.kernel` on a function. Each parameter says which passes
    write and read it. Parameters that are absent are false, 0 or empty.

    Arguments of a function after those of its tensors, in order:
    - `assertions`: the memref of the number of the assertion, the last output;
    - `measured`: the workspace that all tasks of all phases share, bytes;
    - `shared_bytes`: the shared memory, a memref of bytes;
    - `scratch_bytes`: one memref of bytes for each buffer;
    - `measured` or `phases`: a memref of one i64, the index of the phase. If it
      is -1, the function only stores the bytes of its workspace there, or 0;
    - `tasks`: the index of the task and the number of tasks;
    - `launches`: the handle of the call that the launches belong to, an i64.

    ```mlir
    #posenc.kernel<tasks_by = inputs, tasks = true, phases = [true, false], shared_bytes = 64>
    ```

    Constraints:
    - (kernel_c1) `phases`, if present, has an element; `tasks` is true then.
    - (kernel_c2) `shared_bytes` is not negative, and 0 without `phases`.
    - (kernel_c3) each of `scratch_bytes` is positive; without `workspace`, there
      are none, and `measured` is false.
    - (kernel_c4) not both `tasks` and `launches` are true.
    - (kernel_c5) `assertions` are strings.
  }];
  let parameters = (ins
    Posenc_TasksByParameter<
      "The tensors whose bytes determine the number of tasks: `outputs` (the "
      "default), `inputs` (those that no output may overwrite) or `all`. "
      "posenc-tile-contractions, posenc-tile-inner-products, "
      "posenc-tile-elementwise and posenc-tile-reductions write `all` for a "
      "function that may read much more than it writes, or the reverse; "
      "posenc-forall-to-tasks reads it and writes the others. Read by "
      "posenc-emit-c-interface.">:$tasks_by,
    Posenc_Flag<
      "Whether a call of the function runs one task. Written by "
      "posenc-forall-to-tasks; read by it, posenc-move-allocas-to-workspace and "
      "posenc-emit-c-interface.">:$tasks,
    Posenc_OptionalList<"DenseBoolArrayAttr",
      "For each phase of the function, whether its tasks may run in parallel; "
      "otherwise the phase has one task. Written by posenc-forall-to-tasks; read "
      "by posenc-move-allocas-to-workspace and posenc-emit-c-interface.">:$phases,
    Posenc_Flag<
      "Whether the function computes the size of its workspace from the sizes "
      "of the call. Written by posenc-plan-workspace; read by it, "
      "posenc-forall-to-tasks and posenc-emit-c-interface.">:$measured,
    DefaultValuedParameter<"int64_t", "0",
      "Bytes of the memory that all tasks of a call share. Written by "
      "posenc-forall-to-tasks; read by posenc-emit-c-interface.">:$shared_bytes,
    Posenc_OptionalList<"DenseI64ArrayAttr",
      "Bytes of each buffer of a task, or of a call without tasks, in the "
      "workspace. Written by posenc-move-allocas-to-workspace; read by it and "
      "posenc-emit-c-interface.">:$scratch_bytes,
    Posenc_Flag<
      "Whether the C entry points take a workspace. Written by "
      "posenc-create-kernels and posenc-plan-workspace for the CPU, by "
      "posenc-lower-launches for GPUs, and by posenc-compile, which makes it "
      "the same for all CPUs of a library. Read by "
      "posenc-promote-allocs-to-stack, posenc-forall-to-tasks, "
      "posenc-move-allocas-to-workspace, posenc-emit-c-interface and "
      "posenc-compile.">:$workspace,
    Posenc_Flag<
      "Whether the function launches GPU kernels. Written by "
      "posenc-lower-launches; read by it and posenc-emit-c-interface.">:$launches,
    Posenc_OptionalList<"ArrayAttr",
      "The messages of the function's assertions. The last result, a "
      "`tensor<i64>`, is the number of the first assertion that fails, or how "
      "many there are if none fails. It is no output of the entry points, which "
      "return an error with the message. Written by posenc-simplify-sizes on "
      "tensors; read by it, posenc-create-kernels and "
      "posenc-emit-c-interface.">:$assertions);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Posenc_ChipAttr : Posenc_Attr<"Chip", "chip"> {
  let summary = "an architecture of NVIDIA GPUs";
  let description = [{
    The value of `posenc.chip`: the oldest architecture that runs a GPU kernel, or
    the kernel that loops become. With a letter, it is the only one.

    ```mlir
    #posenc.chip<"sm_90a">
    ```

    Constraints:
    - (chip_c1) the name is `sm_`, digits, and at most one of the letters `a` and
      `f`.
  }];
  let parameters = (ins StringRefParameter<"as `-arch` of nvcc">:$name);
  let assemblyFormat = "`<` $name `>`";
  let genVerifyDecl = 1;
}

def Posenc_GpuAttr : Posenc_Attr<"Gpu", "gpu"> {
  let summary = "what kernels for GPUs may use";
  let description = [{
    The value of `posenc.gpu` on a module. Parameters that are absent are false, as
    they are for Vulkan. Code for several NVIDIA GPUs has the same kernels, except
    those of attention, which code for GPUs older than sm_80 leaves out.

    ```mlir
    #posenc.gpu<functions = true, attention = true, warpgroups = true>
    ```
  }];
  let parameters = (ins
    Posenc_Flag<
      "Whether divisions and math functions give the same bits as on the CPU, as "
      "they do on NVIDIA GPUs, but not on all Vulkan devices.">:$functions,
    Posenc_Flag<
      "Whether attention has kernels, which need asynchronous copies and tensor "
      "cores: one of the GPUs is sm_80 or newer.">:$attention,
    Posenc_Flag<
      "Whether attention has kernels with the products of warpgroups and bulk "
      "copies, too: one of the GPUs is sm_90a.">:$warpgroups,
    Posenc_Flag<
      "Whether a multiprocessor of each GPU that runs attention has 100 KiB of "
      "shared memory, as of sm_86, sm_89, sm_120 and sm_121. Others have "
      "164 KiB or more.">:$small_shared_memory);
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif // POSENC_IR_KERNELATTRS_TD
