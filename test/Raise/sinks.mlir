// One more logit for each head, which is in the denominator only, becomes the sinks of attention.
//
// RUN: posenc-opt --posenc-raise --split-input-file %s | FileCheck %s
// RUN: posenc-opt --posenc-raise --split-input-file --remarks-filter=posenc %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: %python %S/compare-raised.py posenc-run %s
// RUN: %python %S/compare-raised.py posenc-run %s --fault

// As torch-mlir writes it: the largest logit with its index, and slices that are inserted.
// CHECK-LABEL: func @inserted
//       CHECK: posenc.attention scale = 1.000000e+00 {{.*}} sinks(%{{.*}} : tensor<4xf32>)
//   CHECK-NOT: linalg.softmax
//   CHECK-NOT: tensor.concat
#p = affine_map<(h, i, j) -> (h, i, j)>
#n = affine_map<(h, i, j) -> (h, i)>
#h = affine_map<(h, i, j) -> (h)>
func.func @inserted(%q: tensor<4x6x8xf32>, %k: tensor<4x7x8xf32>, %v: tensor<4x7x8xf32>, %sinks: tensor<4xf32>) -> tensor<4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %ze = tensor.empty() : tensor<4x6x8xf32>
  %zf = linalg.fill ins(%zero : f32) outs(%ze : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %te = tensor.empty() : tensor<4x8x7xf32>
  %kt = linalg.transpose ins(%k : tensor<4x7x8xf32>) outs(%te : tensor<4x8x7xf32>) permutation = [0, 2, 1]
  %se = tensor.empty() : tensor<4x6x7xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<4x6x7xf32>) -> tensor<4x6x7xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<4x6x8xf32>, tensor<4x8x7xf32>) outs(%sz : tensor<4x6x7xf32>) -> tensor<4x6x7xf32>
  %ce = tensor.empty() : tensor<4x6x1xf32>
  %c = linalg.generic {indexing_maps = [#h, #p], iterator_types = ["parallel", "parallel", "parallel"]} ins(%sinks : tensor<4xf32>) outs(%ce : tensor<4x6x1xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<4x6x1xf32>
  %le = tensor.empty() : tensor<4x6x8xf32>
  %l0 = tensor.insert_slice %s into %le[0, 0, 0] [4, 6, 7] [1, 1, 1] : tensor<4x6x7xf32> into tensor<4x6x8xf32>
  %l = tensor.insert_slice %c into %l0[0, 0, 7] [4, 6, 1] [1, 1, 1] : tensor<4x6x1xf32> into tensor<4x6x8xf32>
  %i0 = arith.constant 0 : i64
  %me = tensor.empty() : tensor<4x6xf32>
  %mf = linalg.fill ins(%low : f32) outs(%me : tensor<4x6xf32>) -> tensor<4x6xf32>
  %ie = tensor.empty() : tensor<4x6xi64>
  %if = linalg.fill ins(%i0 : i64) outs(%ie : tensor<4x6xi64>) -> tensor<4x6xi64>
  %m:2 = linalg.generic {indexing_maps = [#p, #n, #n], iterator_types = ["parallel", "parallel", "reduction"]} ins(%l : tensor<4x6x8xf32>) outs(%mf, %if : tensor<4x6xf32>, tensor<4x6xi64>) {
  ^bb0(%a: f32, %b: f32, %c0: i64):
    %j = linalg.index 2 : index
    %j64 = arith.index_cast %j : index to i64
    %y = arith.maximumf %a, %b : f32
    %g = arith.cmpf ogt, %a, %b : f32
    %z = arith.select %g, %j64, %c0 : i64
    linalg.yield %y, %z : f32, i64
  } -> (tensor<4x6xf32>, tensor<4x6xi64>)
  %ee = tensor.empty() : tensor<4x6x8xf32>
  %e = linalg.generic {indexing_maps = [#p, #n, #p], iterator_types = ["parallel", "parallel", "parallel"]} ins(%l, %m#0 : tensor<4x6x8xf32>, tensor<4x6xf32>) outs(%ee : tensor<4x6x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c0: f32):
    %x = arith.subf %a, %b : f32
    %y = math.exp %x : f32
    linalg.yield %y : f32
  } -> tensor<4x6x8xf32>
  %nf = linalg.fill ins(%zero : f32) outs(%me : tensor<4x6xf32>) -> tensor<4x6xf32>
  %sum = linalg.generic {indexing_maps = [#p, #n], iterator_types = ["parallel", "parallel", "reduction"]} ins(%e : tensor<4x6x8xf32>) outs(%nf : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32):
    %y = arith.addf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<4x6xf32>
  %w = linalg.generic {indexing_maps = [#p, #n, #p], iterator_types = ["parallel", "parallel", "parallel"]} ins(%e, %sum : tensor<4x6x8xf32>, tensor<4x6xf32>) outs(%ee : tensor<4x6x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c0: f32):
    %y = arith.divf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<4x6x8xf32>
  %p = tensor.extract_slice %w[0, 0, 0] [4, 6, 7] [1, 1, 1] : tensor<4x6x8xf32> to tensor<4x6x7xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<4x6x7xf32>, tensor<4x7x8xf32>) outs(%zf : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  return %o : tensor<4x6x8xf32>
}

// -----

// A softmax as an operation, of logits that had their largest subtracted.
// CHECK-LABEL: func @shifted
//       CHECK: posenc.attention scale = 1.000000e+00 {{.*}} sinks(%{{.*}} : tensor<4xf32>)
//   CHECK-NOT: linalg.softmax
//   CHECK-NOT: tensor.concat
#p = affine_map<(h, i, j) -> (h, i, j)>
#n = affine_map<(h, i, j) -> (h, i)>
#h = affine_map<(h, i, j) -> (h)>
func.func @shifted(%q: tensor<4x6x8xf32>, %k: tensor<4x7x8xf32>, %v: tensor<4x7x8xf32>, %sinks: tensor<4xf32>) -> tensor<4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %ze = tensor.empty() : tensor<4x6x8xf32>
  %zf = linalg.fill ins(%zero : f32) outs(%ze : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %te = tensor.empty() : tensor<4x8x7xf32>
  %kt = linalg.transpose ins(%k : tensor<4x7x8xf32>) outs(%te : tensor<4x8x7xf32>) permutation = [0, 2, 1]
  %se = tensor.empty() : tensor<4x6x7xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<4x6x7xf32>) -> tensor<4x6x7xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<4x6x8xf32>, tensor<4x8x7xf32>) outs(%sz : tensor<4x6x7xf32>) -> tensor<4x6x7xf32>
  %ce = tensor.empty() : tensor<4x6x1xf32>
  %c = linalg.generic {indexing_maps = [#h, #p], iterator_types = ["parallel", "parallel", "parallel"]} ins(%sinks : tensor<4xf32>) outs(%ce : tensor<4x6x1xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<4x6x1xf32>
  %l = tensor.concat dim(2) %s, %c : (tensor<4x6x7xf32>, tensor<4x6x1xf32>) -> tensor<4x6x8xf32>
  %xe = tensor.empty() : tensor<4x6xf32>
  %xf = linalg.fill ins(%low : f32) outs(%xe : tensor<4x6xf32>) -> tensor<4x6xf32>
  %xm = linalg.generic {indexing_maps = [#p, #n], iterator_types = ["parallel", "parallel", "reduction"]} ins(%l : tensor<4x6x8xf32>) outs(%xf : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32):
    %y = arith.maximumf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<4x6xf32>
  %x = linalg.generic {indexing_maps = [#p, #n, #p], iterator_types = ["parallel", "parallel", "parallel"]} ins(%l, %xm : tensor<4x6x8xf32>, tensor<4x6xf32>) outs(%ze : tensor<4x6x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c0: f32):
    %y = arith.subf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<4x6x8xf32>
  %w = linalg.softmax dimension(2) ins(%x : tensor<4x6x8xf32>) outs(%ze : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %p = tensor.extract_slice %w[0, 0, 0] [4, 6, 7] [1, 1, 1] : tensor<4x6x8xf32> to tensor<4x6x7xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<4x6x7xf32>, tensor<4x7x8xf32>) outs(%zf : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  return %o : tensor<4x6x8xf32>
}

// -----

// The column of the sinks is the first one.
// CHECK-LABEL: func @first_column
//       CHECK: posenc.attention scale = 1.000000e+00 {{.*}} sinks(%{{.*}} : tensor<4xf32>)
//   CHECK-NOT: linalg.softmax
//   CHECK-NOT: tensor.concat
#p = affine_map<(h, i, j) -> (h, i, j)>
#n = affine_map<(h, i, j) -> (h, i)>
#h = affine_map<(h, i, j) -> (h)>
func.func @first_column(%q: tensor<4x6x8xf32>, %k: tensor<4x7x8xf32>, %v: tensor<4x7x8xf32>, %sinks: tensor<4xf32>) -> tensor<4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %ze = tensor.empty() : tensor<4x6x8xf32>
  %zf = linalg.fill ins(%zero : f32) outs(%ze : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %te = tensor.empty() : tensor<4x8x7xf32>
  %kt = linalg.transpose ins(%k : tensor<4x7x8xf32>) outs(%te : tensor<4x8x7xf32>) permutation = [0, 2, 1]
  %se = tensor.empty() : tensor<4x6x7xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<4x6x7xf32>) -> tensor<4x6x7xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<4x6x8xf32>, tensor<4x8x7xf32>) outs(%sz : tensor<4x6x7xf32>) -> tensor<4x6x7xf32>
  %ce = tensor.empty() : tensor<4x6x1xf32>
  %c = linalg.generic {indexing_maps = [#h, #p], iterator_types = ["parallel", "parallel", "parallel"]} ins(%sinks : tensor<4xf32>) outs(%ce : tensor<4x6x1xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<4x6x1xf32>
  %l = tensor.concat dim(2) %c, %s : (tensor<4x6x1xf32>, tensor<4x6x7xf32>) -> tensor<4x6x8xf32>
  %me = tensor.empty() : tensor<4x6xf32>
  %mf = linalg.fill ins(%low : f32) outs(%me : tensor<4x6xf32>) -> tensor<4x6xf32>
  %m = linalg.generic {indexing_maps = [#p, #n], iterator_types = ["parallel", "parallel", "reduction"]} ins(%l : tensor<4x6x8xf32>) outs(%mf : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32):
    %y = arith.maximumf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<4x6xf32>
  %ee = tensor.empty() : tensor<4x6x8xf32>
  %e = linalg.generic {indexing_maps = [#p, #n, #p], iterator_types = ["parallel", "parallel", "parallel"]} ins(%l, %m : tensor<4x6x8xf32>, tensor<4x6xf32>) outs(%ee : tensor<4x6x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c0: f32):
    %x = arith.subf %a, %b : f32
    %y = math.exp %x : f32
    linalg.yield %y : f32
  } -> tensor<4x6x8xf32>
  %nf = linalg.fill ins(%zero : f32) outs(%me : tensor<4x6xf32>) -> tensor<4x6xf32>
  %sum = linalg.generic {indexing_maps = [#p, #n], iterator_types = ["parallel", "parallel", "reduction"]} ins(%e : tensor<4x6x8xf32>) outs(%nf : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32):
    %y = arith.addf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<4x6xf32>
  %w = linalg.generic {indexing_maps = [#p, #n, #p], iterator_types = ["parallel", "parallel", "parallel"]} ins(%e, %sum : tensor<4x6x8xf32>, tensor<4x6xf32>) outs(%ee : tensor<4x6x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c0: f32):
    %y = arith.divf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<4x6x8xf32>
  %p = tensor.extract_slice %w[0, 0, 1] [4, 6, 7] [1, 1, 1] : tensor<4x6x8xf32> to tensor<4x6x7xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<4x6x7xf32>, tensor<4x7x8xf32>) outs(%zf : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  return %o : tensor<4x6x8xf32>
}

// -----

// One more term of the denominator.
// CHECK-LABEL: func @term
//       CHECK: posenc.attention scale = 1.000000e+00 {{.*}} sinks(%{{.*}} : tensor<4xf32>)
//   CHECK-NOT: linalg.softmax
//   CHECK-NOT: tensor.concat
#p = affine_map<(h, i, j) -> (h, i, j)>
#n = affine_map<(h, i, j) -> (h, i)>
#h = affine_map<(h, i, j) -> (h)>
#r = affine_map<(h, i) -> (h, i)>
#r0 = affine_map<(h, i) -> (h)>
func.func @term(%q: tensor<4x6x8xf32>, %k: tensor<4x7x8xf32>, %v: tensor<4x7x8xf32>, %sinks: tensor<4xf32>) -> tensor<4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %ze = tensor.empty() : tensor<4x6x8xf32>
  %zf = linalg.fill ins(%zero : f32) outs(%ze : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %te = tensor.empty() : tensor<4x8x7xf32>
  %kt = linalg.transpose ins(%k : tensor<4x7x8xf32>) outs(%te : tensor<4x8x7xf32>) permutation = [0, 2, 1]
  %se = tensor.empty() : tensor<4x6x7xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<4x6x7xf32>) -> tensor<4x6x7xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<4x6x8xf32>, tensor<4x8x7xf32>) outs(%sz : tensor<4x6x7xf32>) -> tensor<4x6x7xf32>
  %me = tensor.empty() : tensor<4x6xf32>
  %mf = linalg.fill ins(%low : f32) outs(%me : tensor<4x6xf32>) -> tensor<4x6xf32>
  %m = linalg.generic {indexing_maps = [#p, #n], iterator_types = ["parallel", "parallel", "reduction"]} ins(%s : tensor<4x6x7xf32>) outs(%mf : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32):
    %y = arith.maximumf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<4x6xf32>
  %ee = tensor.empty() : tensor<4x6x7xf32>
  %e = linalg.generic {indexing_maps = [#p, #n, #p], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %m : tensor<4x6x7xf32>, tensor<4x6xf32>) outs(%ee : tensor<4x6x7xf32>) {
  ^bb0(%a: f32, %b: f32, %c0: f32):
    %x = arith.subf %a, %b : f32
    %y = math.exp %x : f32
    linalg.yield %y : f32
  } -> tensor<4x6x7xf32>
  %nf = linalg.fill ins(%zero : f32) outs(%me : tensor<4x6xf32>) -> tensor<4x6xf32>
  %sum = linalg.generic {indexing_maps = [#p, #n], iterator_types = ["parallel", "parallel", "reduction"]} ins(%e : tensor<4x6x7xf32>) outs(%nf : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32):
    %y = arith.addf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<4x6xf32>
  %t = linalg.generic {indexing_maps = [#r, #r0, #r, #r], iterator_types = ["parallel", "parallel"]} ins(%sum, %sinks, %m : tensor<4x6xf32>, tensor<4xf32>, tensor<4x6xf32>) outs(%me : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c0: f32, %d: f32):
    %x = arith.subf %b, %c0 : f32
    %y = math.exp %x : f32
    %z = arith.addf %y, %a : f32
    linalg.yield %z : f32
  } -> tensor<4x6xf32>
  %w = linalg.generic {indexing_maps = [#p, #n, #p], iterator_types = ["parallel", "parallel", "parallel"]} ins(%e, %t : tensor<4x6x7xf32>, tensor<4x6xf32>) outs(%ee : tensor<4x6x7xf32>) {
  ^bb0(%a: f32, %b: f32, %c0: f32):
    %y = arith.divf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<4x6x7xf32>
  %o = linalg.batch_matmul ins(%w, %v : tensor<4x6x7xf32>, tensor<4x7x8xf32>) outs(%zf : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  return %o : tensor<4x6x8xf32>
}

// -----

// A denominator that starts at 1: a sink of 0.
// CHECK-LABEL: func @one
//       CHECK: %[[N:.*]] = linalg.generic
//       CHECK: linalg.yield %cst
//       CHECK: posenc.attention {{.*}} sinks(%[[N]] : tensor<4xf32>)
#p = affine_map<(h, i, j) -> (h, i, j)>
#n = affine_map<(h, i, j) -> (h, i)>
#h = affine_map<(h, i, j) -> (h)>
func.func @one(%q: tensor<4x6x8xf32>, %k: tensor<4x7x8xf32>, %v: tensor<4x7x8xf32>) -> tensor<4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %ze = tensor.empty() : tensor<4x6x8xf32>
  %zf = linalg.fill ins(%zero : f32) outs(%ze : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %te = tensor.empty() : tensor<4x8x7xf32>
  %kt = linalg.transpose ins(%k : tensor<4x7x8xf32>) outs(%te : tensor<4x8x7xf32>) permutation = [0, 2, 1]
  %se = tensor.empty() : tensor<4x6x7xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<4x6x7xf32>) -> tensor<4x6x7xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<4x6x8xf32>, tensor<4x8x7xf32>) outs(%sz : tensor<4x6x7xf32>) -> tensor<4x6x7xf32>
  %one = arith.constant dense<1.0> : tensor<4x6xf32>
  %e = math.exp %s : tensor<4x6x7xf32>
  %me = tensor.empty() : tensor<4x6xf32>
  %nf = linalg.fill ins(%zero : f32) outs(%me : tensor<4x6xf32>) -> tensor<4x6xf32>
  %sum = linalg.generic {indexing_maps = [#p, #n], iterator_types = ["parallel", "parallel", "reduction"]} ins(%e : tensor<4x6x7xf32>) outs(%nf : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32):
    %y = arith.addf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<4x6xf32>
  %t = arith.addf %sum, %one : tensor<4x6xf32>
  %w = linalg.generic {indexing_maps = [#p, #n, #p], iterator_types = ["parallel", "parallel", "parallel"]} ins(%e, %t : tensor<4x6x7xf32>, tensor<4x6xf32>) outs(%se : tensor<4x6x7xf32>) {
  ^bb0(%a: f32, %b: f32, %c0: f32):
    %y = arith.divf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<4x6x7xf32>
  %o = linalg.batch_matmul ins(%w, %v : tensor<4x6x7xf32>, tensor<4x7x8xf32>) outs(%zf : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  return %o : tensor<4x6x8xf32>
}

// -----

// The column depends on the query.
// REMARK: Function=of_queries {{.*}}looks like attention, but a column of the logits that is no key depends on more than the head
// CHECK-LABEL: func @of_queries
//   CHECK-NOT: posenc.attention
//       CHECK: return
#p = affine_map<(h, i, j) -> (h, i, j)>
#n = affine_map<(h, i, j) -> (h, i)>
#h = affine_map<(h, i, j) -> (h)>
func.func @of_queries(%q: tensor<4x6x8xf32>, %k: tensor<4x7x8xf32>, %v: tensor<4x7x8xf32>, %c: tensor<4x6x1xf32>) -> tensor<4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %ze = tensor.empty() : tensor<4x6x8xf32>
  %zf = linalg.fill ins(%zero : f32) outs(%ze : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %te = tensor.empty() : tensor<4x8x7xf32>
  %kt = linalg.transpose ins(%k : tensor<4x7x8xf32>) outs(%te : tensor<4x8x7xf32>) permutation = [0, 2, 1]
  %se = tensor.empty() : tensor<4x6x7xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<4x6x7xf32>) -> tensor<4x6x7xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<4x6x8xf32>, tensor<4x8x7xf32>) outs(%sz : tensor<4x6x7xf32>) -> tensor<4x6x7xf32>
  %l = tensor.concat dim(2) %s, %c : (tensor<4x6x7xf32>, tensor<4x6x1xf32>) -> tensor<4x6x8xf32>
  %w = linalg.softmax dimension(2) ins(%l : tensor<4x6x8xf32>) outs(%ze : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %p = tensor.extract_slice %w[0, 0, 0] [4, 6, 7] [1, 1, 1] : tensor<4x6x8xf32> to tensor<4x6x7xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<4x6x7xf32>, tensor<4x7x8xf32>) outs(%zf : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  return %o : tensor<4x6x8xf32>
}

// -----

// Two columns.
// REMARK: Function=two_columns {{.*}}looks like attention, but the softmax has other columns than the keys
// CHECK-LABEL: func @two_columns
//   CHECK-NOT: posenc.attention
//       CHECK: return
#p = affine_map<(h, i, j) -> (h, i, j)>
#n = affine_map<(h, i, j) -> (h, i)>
#h = affine_map<(h, i, j) -> (h)>
func.func @two_columns(%q: tensor<4x6x8xf32>, %k: tensor<4x6x8xf32>, %v: tensor<4x6x8xf32>, %sinks: tensor<4xf32>) -> tensor<4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %ze = tensor.empty() : tensor<4x6x8xf32>
  %zf = linalg.fill ins(%zero : f32) outs(%ze : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %te = tensor.empty() : tensor<4x8x6xf32>
  %kt = linalg.transpose ins(%k : tensor<4x6x8xf32>) outs(%te : tensor<4x8x6xf32>) permutation = [0, 2, 1]
  %se = tensor.empty() : tensor<4x6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<4x6x6xf32>) -> tensor<4x6x6xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<4x6x8xf32>, tensor<4x8x6xf32>) outs(%sz : tensor<4x6x6xf32>) -> tensor<4x6x6xf32>
  %ce = tensor.empty() : tensor<4x6x1xf32>
  %c = linalg.generic {indexing_maps = [#h, #p], iterator_types = ["parallel", "parallel", "parallel"]} ins(%sinks : tensor<4xf32>) outs(%ce : tensor<4x6x1xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<4x6x1xf32>
  %l = tensor.concat dim(2) %s, %c, %c : (tensor<4x6x6xf32>, tensor<4x6x1xf32>, tensor<4x6x1xf32>) -> tensor<4x6x8xf32>
  %w = linalg.softmax dimension(2) ins(%l : tensor<4x6x8xf32>) outs(%ze : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %p = tensor.extract_slice %w[0, 0, 0] [4, 6, 6] [1, 1, 1] : tensor<4x6x8xf32> to tensor<4x6x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<4x6x6xf32>, tensor<4x6x8xf32>) outs(%zf : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  return %o : tensor<4x6x8xf32>
}

// -----

// The first key is dropped, and the sink has a value.
// REMARK: Function=another_column {{.*}}looks like attention, but {{.*}}
// CHECK-LABEL: func @another_column
//   CHECK-NOT: posenc.attention
//       CHECK: return
#p = affine_map<(h, i, j) -> (h, i, j)>
#n = affine_map<(h, i, j) -> (h, i)>
#h = affine_map<(h, i, j) -> (h)>
func.func @another_column(%q: tensor<4x6x8xf32>, %k: tensor<4x7x8xf32>, %v: tensor<4x7x8xf32>, %sinks: tensor<4xf32>) -> tensor<4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %ze = tensor.empty() : tensor<4x6x8xf32>
  %zf = linalg.fill ins(%zero : f32) outs(%ze : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %te = tensor.empty() : tensor<4x8x7xf32>
  %kt = linalg.transpose ins(%k : tensor<4x7x8xf32>) outs(%te : tensor<4x8x7xf32>) permutation = [0, 2, 1]
  %se = tensor.empty() : tensor<4x6x7xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<4x6x7xf32>) -> tensor<4x6x7xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<4x6x8xf32>, tensor<4x8x7xf32>) outs(%sz : tensor<4x6x7xf32>) -> tensor<4x6x7xf32>
  %ce = tensor.empty() : tensor<4x6x1xf32>
  %c = linalg.generic {indexing_maps = [#h, #p], iterator_types = ["parallel", "parallel", "parallel"]} ins(%sinks : tensor<4xf32>) outs(%ce : tensor<4x6x1xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<4x6x1xf32>
  %l = tensor.concat dim(2) %s, %c : (tensor<4x6x7xf32>, tensor<4x6x1xf32>) -> tensor<4x6x8xf32>
  %w = linalg.softmax dimension(2) ins(%l : tensor<4x6x8xf32>) outs(%ze : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %p = tensor.extract_slice %w[0, 0, 1] [4, 6, 7] [1, 1, 1] : tensor<4x6x8xf32> to tensor<4x6x7xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<4x6x7xf32>, tensor<4x7x8xf32>) outs(%zf : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  return %o : tensor<4x6x8xf32>
}

// -----

// The sink has another shift than the keys.
// REMARK: Function=other_shift {{.*}}looks like attention, but the sum of exponentials has a term that is none of them, or has another shift
// CHECK-LABEL: func @other_shift
//   CHECK-NOT: posenc.attention
//       CHECK: return
#p = affine_map<(h, i, j) -> (h, i, j)>
#n = affine_map<(h, i, j) -> (h, i)>
#h = affine_map<(h, i, j) -> (h)>
#r = affine_map<(h, i) -> (h, i)>
#r0 = affine_map<(h, i) -> (h)>
func.func @other_shift(%q: tensor<4x6x8xf32>, %k: tensor<4x7x8xf32>, %v: tensor<4x7x8xf32>, %sinks: tensor<4xf32>, %m0: tensor<4x6xf32>) -> tensor<4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %ze = tensor.empty() : tensor<4x6x8xf32>
  %zf = linalg.fill ins(%zero : f32) outs(%ze : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %te = tensor.empty() : tensor<4x8x7xf32>
  %kt = linalg.transpose ins(%k : tensor<4x7x8xf32>) outs(%te : tensor<4x8x7xf32>) permutation = [0, 2, 1]
  %se = tensor.empty() : tensor<4x6x7xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<4x6x7xf32>) -> tensor<4x6x7xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<4x6x8xf32>, tensor<4x8x7xf32>) outs(%sz : tensor<4x6x7xf32>) -> tensor<4x6x7xf32>
  %me = tensor.empty() : tensor<4x6xf32>
  %mf = linalg.fill ins(%low : f32) outs(%me : tensor<4x6xf32>) -> tensor<4x6xf32>
  %m = linalg.generic {indexing_maps = [#p, #n], iterator_types = ["parallel", "parallel", "reduction"]} ins(%s : tensor<4x6x7xf32>) outs(%mf : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32):
    %y = arith.maximumf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<4x6xf32>
  %ee = tensor.empty() : tensor<4x6x7xf32>
  %e = linalg.generic {indexing_maps = [#p, #n, #p], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %m : tensor<4x6x7xf32>, tensor<4x6xf32>) outs(%ee : tensor<4x6x7xf32>) {
  ^bb0(%a: f32, %b: f32, %c0: f32):
    %x = arith.subf %a, %b : f32
    %y = math.exp %x : f32
    linalg.yield %y : f32
  } -> tensor<4x6x7xf32>
  %nf = linalg.fill ins(%zero : f32) outs(%me : tensor<4x6xf32>) -> tensor<4x6xf32>
  %sum = linalg.generic {indexing_maps = [#p, #n], iterator_types = ["parallel", "parallel", "reduction"]} ins(%e : tensor<4x6x7xf32>) outs(%nf : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32):
    %y = arith.addf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<4x6xf32>
  %t = linalg.generic {indexing_maps = [#r, #r0, #r, #r], iterator_types = ["parallel", "parallel"]} ins(%sum, %sinks, %m0 : tensor<4x6xf32>, tensor<4xf32>, tensor<4x6xf32>) outs(%me : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c0: f32, %d: f32):
    %x = arith.subf %b, %c0 : f32
    %y = math.exp %x : f32
    %z = arith.addf %y, %a : f32
    linalg.yield %z : f32
  } -> tensor<4x6xf32>
  %w = linalg.generic {indexing_maps = [#p, #n, #p], iterator_types = ["parallel", "parallel", "parallel"]} ins(%e, %t : tensor<4x6x7xf32>, tensor<4x6xf32>) outs(%ee : tensor<4x6x7xf32>) {
  ^bb0(%a: f32, %b: f32, %c0: f32):
    %y = arith.divf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<4x6x7xf32>
  %o = linalg.batch_matmul ins(%w, %v : tensor<4x6x7xf32>, tensor<4x7x8xf32>) outs(%zf : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  return %o : tensor<4x6x8xf32>
}

// -----

// The last key counts in the denominator, and its value does not.
// REMARK: Function=dropped_key {{.*}}looks like attention, but {{.*}}
// CHECK-LABEL: func @dropped_key
//   CHECK-NOT: posenc.attention
//       CHECK: return
#p = affine_map<(h, i, j) -> (h, i, j)>
#n = affine_map<(h, i, j) -> (h, i)>
#h = affine_map<(h, i, j) -> (h)>
func.func @dropped_key(%q: tensor<4x6x8xf32>, %k: tensor<4x8x8xf32>, %v: tensor<4x7x8xf32>) -> tensor<4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %ze = tensor.empty() : tensor<4x6x8xf32>
  %zf = linalg.fill ins(%zero : f32) outs(%ze : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %te = tensor.empty() : tensor<4x8x8xf32>
  %kt = linalg.transpose ins(%k : tensor<4x8x8xf32>) outs(%te : tensor<4x8x8xf32>) permutation = [0, 2, 1]
  %se = tensor.empty() : tensor<4x6x8xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<4x6x8xf32>, tensor<4x8x8xf32>) outs(%sz : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %w = linalg.softmax dimension(2) ins(%s : tensor<4x6x8xf32>) outs(%ze : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %p = tensor.extract_slice %w[0, 0, 0] [4, 6, 7] [1, 1, 1] : tensor<4x6x8xf32> to tensor<4x6x7xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<4x6x7xf32>, tensor<4x7x8xf32>) outs(%zf : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  return %o : tensor<4x6x8xf32>
}

// -----

// The number of keys is dynamic.
// CHECK-LABEL: func @dynamic
//       CHECK: posenc.attention scale = 1.000000e+00 {{.*}} sinks(%{{.*}} : tensor<4xf32>)
//   CHECK-NOT: linalg.softmax
func.func @dynamic(%q: tensor<4x6x8xf32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>, %sinks: tensor<4x1x1xf32>) -> tensor<4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %n = tensor.dim %k, %c1 : tensor<4x?x8xf32>
  %n1 = arith.addi %n, %c1 : index
  %ze = tensor.empty() : tensor<4x6x8xf32>
  %zf = linalg.fill ins(%zero : f32) outs(%ze : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %te = tensor.empty(%n) : tensor<4x8x?xf32>
  %kt = linalg.transpose ins(%k : tensor<4x?x8xf32>) outs(%te : tensor<4x8x?xf32>) permutation = [0, 2, 1]
  %se = tensor.empty(%n) : tensor<4x6x?xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<4x6x?xf32>) -> tensor<4x6x?xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<4x6x8xf32>, tensor<4x8x?xf32>) outs(%sz : tensor<4x6x?xf32>) -> tensor<4x6x?xf32>
  %ce = tensor.empty() : tensor<4x6x1xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(h, i, j) -> (h, 0, j)>, affine_map<(h, i, j) -> (h, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%sinks : tensor<4x1x1xf32>) outs(%ce : tensor<4x6x1xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<4x6x1xf32>
  %l = tensor.concat dim(2) %s, %c : (tensor<4x6x?xf32>, tensor<4x6x1xf32>) -> tensor<4x6x?xf32>
  %we = tensor.empty(%n1) : tensor<4x6x?xf32>
  %w = linalg.softmax dimension(2) ins(%l : tensor<4x6x?xf32>) outs(%we : tensor<4x6x?xf32>) -> tensor<4x6x?xf32>
  %p = tensor.extract_slice %w[0, 0, 0] [4, 6, %n] [1, 1, 1] : tensor<4x6x?xf32> to tensor<4x6x?xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<4x6x?xf32>, tensor<4x?x8xf32>) outs(%zf : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  return %o : tensor<4x6x8xf32>
}

// -----

// Weights of fewer keys than the softmax has.
// CHECK-LABEL: func @dynamic_part
//   CHECK-NOT: posenc.attention
//       CHECK: return
func.func @dynamic_part(%q: tensor<4x6x8xf32>, %k: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>, %sinks: tensor<4x1x1xf32>, %part: tensor<4x?xf32>) -> tensor<4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %n = tensor.dim %k, %c1 : tensor<4x?x8xf32>
  %n1 = arith.addi %n, %c1 : index
  %ze = tensor.empty() : tensor<4x6x8xf32>
  %zf = linalg.fill ins(%zero : f32) outs(%ze : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %te = tensor.empty(%n) : tensor<4x8x?xf32>
  %kt = linalg.transpose ins(%k : tensor<4x?x8xf32>) outs(%te : tensor<4x8x?xf32>) permutation = [0, 2, 1]
  %se = tensor.empty(%n) : tensor<4x6x?xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<4x6x?xf32>) -> tensor<4x6x?xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<4x6x8xf32>, tensor<4x8x?xf32>) outs(%sz : tensor<4x6x?xf32>) -> tensor<4x6x?xf32>
  %ce = tensor.empty() : tensor<4x6x1xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(h, i, j) -> (h, 0, j)>, affine_map<(h, i, j) -> (h, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%sinks : tensor<4x1x1xf32>) outs(%ce : tensor<4x6x1xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<4x6x1xf32>
  %l = tensor.concat dim(2) %s, %c : (tensor<4x6x?xf32>, tensor<4x6x1xf32>) -> tensor<4x6x?xf32>
  %we = tensor.empty(%n1) : tensor<4x6x?xf32>
  %w = linalg.softmax dimension(2) ins(%l : tensor<4x6x?xf32>) outs(%we : tensor<4x6x?xf32>) -> tensor<4x6x?xf32>
  %m = tensor.dim %part, %c1 : tensor<4x?xf32>
  %m1 = arith.subi %m, %c1 : index
  %p = tensor.extract_slice %w[0, 0, 0] [4, 6, %m1] [1, 1, 1] : tensor<4x6x?xf32> to tensor<4x6x?xf32>
  %vp = tensor.extract_slice %v[0, 0, 0] [4, %m1, 8] [1, 1, 1] : tensor<4x?x8xf32> to tensor<4x?x8xf32>
  %o = linalg.batch_matmul ins(%p, %vp : tensor<4x6x?xf32>, tensor<4x?x8xf32>) outs(%zf : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  return %o : tensor<4x6x8xf32>
}
