// Products whose operands are rounded to bfloat16, by AVX512-BF16: the kernels of linear.h, whose elements are pairs of
// neighbouring numbers here. The bits are the same as in bfloat16.h, unless a partial sum is subnormal.
#pragma once
#include <algorithm>

#include "rounded-pairs.h"
#include "weight-gradient.h"

namespace drmas {
namespace DRMAS_ISA {

template <>
struct FactorOf<Pair> {
  using type = Pair;
};

inline size_t bfloat16PackedSize(long inputs, long outputs) { return 2 * packedSize(pairsOf(inputs), outputs); }

template <class Element>
inline void bfloat16Pack(Pool& pool, Bfloat16* packed, const Element* weight, long inputs, long outputs,
                       bool transpose) {
  packPairs<kPanel, Operand::Right>(pool, reinterpret_cast<Pair*>(packed), weight, inputs, outputs, transpose,
                                    pairsOf(inputs));
}

/// Rows [rows, inputs] as pairs. Valid until this thread rounds the next.
inline const Pair* roundedRows(Pool& pool, const float* x, long rows, long inputs) {
  const long pairs = pairsOf(inputs);
  static thread_local Scratch scratch;
  Pair* factors = scratch.take<Pair>(rows * pairs);
  forRowBlocks(pool, rows, inputs, [&](long first, long end) {
    for (long r = first; r < end; r++) {
      const float* from = x + r * inputs;
      float* to = reinterpret_cast<float*>(factors + r * pairs);
      for (long k = 0; k < pairs; k += kLanes) {
        const long rest = inputs - 2 * k;
        const F16 line = roundedNeighbours(loadOrZero(from + 2 * k, rest),
                                           loadOrZero(from + 2 * k + kLanes, rest - kLanes));
        storeUpTo(to + k, line, static_cast<int>(std::min<long>(kLanes, pairs - k)));
      }
    }
  });
  return factors;
}

inline void bfloat16Linear(Pool& pool, float* out, const float* x, const Bfloat16* packed, long rows, long inputs,
                         long outputs, bool accumulate) {
  linear(pool, out, roundedRows(pool, x, rows, inputs), reinterpret_cast<const Pair*>(packed), rows, pairsOf(inputs),
         outputs, accumulate);
}

inline void bfloat16BlockLinearTransposed(Pool& pool, float* out, const float* x, const int32_t* blocks, long format,
                                          long rows, long inputs, long outputs, bool accumulate) {
  const Pair* factors = roundedRows(pool, x, rows, inputs);
  inBlocks(blocks, format, outputs, inputs, [&](const auto& matrix) {
    linearUnpacked<Pair, kLanes>(pool, out, factors, rows, pairsOf(inputs), outputs, accumulate,
                                 [&](Pair* to, long column, long first, long count) {
                                   unpackPairs<kPanel>(to, matrix, column, first, count);
                                 });
  });
}

/// Each two neighbouring rows of a matrix, rounded, as one row of pairs; an odd one out has a partner of zeros.
inline void roundPairsOfRows(Pool& pool, Pair* to, const float* from, long rows, long width) {
  forRowBlocks(pool, pairsOf(rows), width, [&](long first, long end) {
    for (long r = first; r < end; r++) {
      const float* one = from + 2 * r * width;
      float* line = reinterpret_cast<float*>(to + r * width);
      const auto other = [&](long i, int n) { return 2 * r + 1 < rows ? loadUpTo(one + width + i, n) : zero(); };
      forVectors(
          width, [&](long i) { store(line + i, roundedPairs(load(one + i), other(i, kLanes))); },
          [&](long i, int rest) {
            storePartial(line + i, roundedPairs(loadPartial(one + i, rest), other(i, rest)), rest);
          });
    }
  });
}

inline void bfloat16LinearWeightGradient(Pool& pool, float* dWeight, const float* x, const float* dOut, long rows,
                                       long inputs, long outputs) {
  const long pairs = pairsOf(rows);
  static thread_local Scratch ofInputs, ofOutputs;
  Pair* factors = ofInputs.take<Pair>(pairs * inputs);
  Pair* gradients = ofOutputs.take<Pair>(pairs * outputs);
  roundPairsOfRows(pool, factors, x, rows, inputs);
  roundPairsOfRows(pool, gradients, dOut, rows, outputs);
  weightGradient(pool, dWeight, factors, gradients, pairs, inputs, outputs);
}

}  // namespace DRMAS_ISA
}  // namespace drmas
