!q = tensor<1x?x8x64xf32>

// A mask of keys at even distances, for which no source file of the compiler changes.
func.func @dilated(%q: !q, %k: !q, %v: !q, %o: !q) -> !q {
  %r = posenc.attention causal ins(%q, %k, %v : !q, !q, !q) outs(%o : !q)
    where(%b, %h, %i, %j) {
      %distance = arith.subi %i, %j : index
      %two = arith.constant 2 : index
      %zero = arith.constant 0 : index
      %rest = arith.remui %distance, %two : index
      %y = arith.cmpi eq, %rest, %zero : index
      posenc.yield %y : i1
    }
  return %r : !q
}
