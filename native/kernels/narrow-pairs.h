// Products whose operands are rounded to bfloat16, by AVX512-BF16: the kernels of linear.h, whose elements are pairs of
// neighbouring numbers here. The bits are those of narrow.h, where no sum on the way is subnormal.
#pragma once
#include <algorithm>

#include "../simd/pairs.h"
#include "rounding.h"

namespace drmas {
namespace DRMAS_ISA {

template <>
struct FactorOf<Pair> {
  using type = Pair;
};

inline size_t packedNarrowSize(long inputs, long outputs) { return 2 * packedSize(pairsOf(inputs), outputs); }

template <class Element>
inline void packNarrow(Pool& pool, Bfloat16* packed, const Element* weight, long inputs, long outputs,
                       bool transpose) {
  packRounded<kPanel>(pool, packed, weight, inputs, outputs, transpose, 2 * pairsOf(inputs),
                      [](Bfloat16* panel, long k, int n, Bfloat16 first, Bfloat16 second) {
                        reinterpret_cast<Pair*>(panel)[k / 2 * kPanel + n] = pairOf(first, second);
                      });
}

inline void linearNarrow(Pool& pool, float* out, const float* x, const Bfloat16* packed, long rows, long inputs,
                         long outputs, bool accumulate) {
  const long pairs = pairsOf(inputs);
  static thread_local Scratch scratch;
  Pair* factors = scratch.room<Pair>(rows * pairs);
  forRowBlocks(pool, rows, inputs, [&](long first, long end) {
    for (long r = first; r < end; r++) {
      const float* from = x + r * inputs;
      for (long k = 0; k < inputs / 2; k++)
        factors[r * pairs + k] = pairOf(rounded(from[2 * k]), rounded(from[2 * k + 1]));
      if (inputs % 2 == 1) factors[(r + 1) * pairs - 1] = pairOf(rounded(from[inputs - 1]), 0);
    }
  });
  linear(pool, out, factors, reinterpret_cast<const Pair*>(packed), rows, pairs, outputs, accumulate);
}

/// Each two neighbouring rows of a matrix, rounded, as one row of pairs; an odd one out has a partner of zeros.
inline void roundRowPairs(Pool& pool, Pair* to, const float* from, long rows, long width) {
  forRowBlocks(pool, rows / 2, width, [&](long first, long end) {
    for (long r = first; r < end; r++)
      for (long i = 0; i < width; i++)
        to[r * width + i] = pairOf(rounded(from[2 * r * width + i]), rounded(from[(2 * r + 1) * width + i]));
  });
  if (rows % 2 == 1)
    for (long i = 0; i < width; i++) to[rows / 2 * width + i] = pairOf(rounded(from[(rows - 1) * width + i]), 0);
}

inline void linearNarrowWeightGradient(Pool& pool, float* dWeight, const float* x, const float* dOut, long rows,
                                       long inputs, long outputs) {
  const long pairs = pairsOf(rows);
  static thread_local Scratch ofInputs, ofOutputs;
  Pair* factors = ofInputs.room<Pair>(pairs * inputs);
  Pair* gradients = ofOutputs.room<Pair>(pairs * outputs);
  roundRowPairs(pool, factors, x, rows, inputs);
  roundRowPairs(pool, gradients, dOut, rows, outputs);
  weightGradient(pool, dWeight, factors, gradients, pairs, inputs, outputs);
}

}  // namespace DRMAS_ISA
}  // namespace drmas
