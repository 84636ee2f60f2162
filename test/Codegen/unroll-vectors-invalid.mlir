//===- unroll-vectors-invalid.mlir - what has no SPIR-V form ===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-unroll-vectors --split-input-file --verify-diagnostics

gpu.module @a {
}
// expected-error @below {{'gpu.module' op is a second module of kernels}}
gpu.module @b {
}

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op has branches, which have no SPIR-V form}}
  gpu.func @k() kernel {
    cf.br ^next
  ^next:
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op takes a 'memref<?x4xf32>', which has no SPIR-V form}}
  gpu.func @k(%x: memref<?x4xf32>) kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op takes a 'memref<?xi1>', which has no SPIR-V form}}
  gpu.func @k(%x: memref<?xi1>) kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op shares a 'memref<2x4xf32, #gpu.address_space<workgroup>>', which has no SPIR-V form}}
  gpu.func @k() workgroup(%s: memref<2x4xf32, #gpu.address_space<workgroup>>) kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op has private memory, which has no SPIR-V form}}
  gpu.func @k() private(%s: memref<4xf32, #gpu.address_space<private>>) kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @k(%x: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'memref.dim' op accesses memory in a way that has no SPIR-V form}}
    %n = memref.dim %x, %c0 : memref<?xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @k() kernel {
    // expected-error @below {{'gpu.grid_dim' op is of a grid that is launched in parts}}
    %n = gpu.grid_dim x
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @k(%x: f64, %i: index) kernel {
    // expected-error @below {{'arith.truncf' op rounds twice, which has no SPIR-V form}}
    %n = arith.truncf %x : f64 to bf16
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @k(%x: bf16) kernel {
    // expected-error @below {{'arith.addf' op has no SPIR-V form}}
    %n = arith.addf %x, %x : bf16
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @k(%v: f32, %i: index) kernel {
    %x = vector.broadcast %v : f32 to vector<4xf32>
    // expected-error @below {{'vector.extract' op has no SPIR-V form}}
    %n = vector.extract %x[%i] : f32 from vector<4xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'memref.global' op is no list of constants}}
  memref.global "private" @x : memref<4xf32>
  gpu.func @k() kernel {
    gpu.return
  }
}
