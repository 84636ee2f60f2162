//===- unroll-vectors-invalid.mlir - kernels without SPIR-V form ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// REQUIRES: spirv
// RUN: posenc-opt %s --posenc-unroll-vectors --split-input-file --verify-diagnostics

gpu.module @a {
}
// expected-error @below {{'gpu.module' op expected a single gpu.module, found a second}}
gpu.module @b {
}

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op cannot have branches in SPIR-V}}
  gpu.func @k() kernel {
    cf.br ^next
  ^next:
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op cannot have an argument of type 'memref<?x4xf32>' in SPIR-V}}
  gpu.func @k(%x: memref<?x4xf32>) kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op cannot have an argument of type 'memref<?xi1>' in SPIR-V}}
  gpu.func @k(%x: memref<?xi1>) kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op cannot have shared memory of type 'memref<2x4xf32, #gpu.address_space<workgroup>>' in SPIR-V}}
  gpu.func @k() workgroup(%s: memref<2x4xf32, #gpu.address_space<workgroup>>) kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op cannot have private memory in SPIR-V}}
  gpu.func @k() private(%s: memref<4xf32, #gpu.address_space<private>>) kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @k(%x: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'memref.dim' op cannot access this memory in SPIR-V}}
    %n = memref.dim %x, %c0 : memref<?xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @k() kernel {
    // expected-error @below {{'gpu.grid_dim' op is not supported: a grid is launched in slices along x}}
    %n = gpu.grid_dim x
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @k(%x: f64, %i: index) kernel {
    // expected-error @below {{'arith.truncf' op would round twice in SPIR-V}}
    %n = arith.truncf %x : f64 to bf16
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @k(%x: bf16) kernel {
    // expected-error @below {{'arith.addf' op is not supported in SPIR-V}}
    %n = arith.addf %x, %x : bf16
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @k(%v: f32, %i: index) kernel {
    %x = vector.broadcast %v : f32 to vector<4xf32>
    // expected-error @below {{'vector.extract' op is not supported in SPIR-V}}
    %n = vector.extract %x[%i] : f32 from vector<4xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'memref.global' op expected constant initial values}}
  memref.global "private" @x : memref<4xf32>
  gpu.func @k() kernel {
    gpu.return
  }
}
