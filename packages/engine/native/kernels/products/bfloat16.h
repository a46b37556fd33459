// Products whose operands are rounded to bfloat16, where no instruction takes bfloat16: the rounded numbers become
// floats again and go through the kernels of linear.h. Each pair of neighbours lies in reverse order, so that these
// sum in the order of rounding.h.
#pragma once
#include <algorithm>

#include "rounding.h"
#include "weight-gradient.h"

namespace drmas {
namespace DRMAS_ISA {

inline size_t bfloat16PackedSize(long inputs, long outputs) { return packedSize(2 * pairsOf(inputs), outputs); }

/// A panel has two rows for a pair of inputs, the second one's first; inputs beyond the matrix's are 0.
template <class Element>
inline void bfloat16Pack(Pool& pool, Bfloat16* packed, const Element* weight, long inputs, long outputs,
                       bool transpose) {
  const long steps = 2 * pairsOf(inputs);
  pool.run(panelsOf(outputs), [&](long panel) {
    Bfloat16* to = packed + panel * kPanel * steps;
    const long first = panel * kPanel;
    const int width = static_cast<int>(std::min<long>(kPanel, outputs - first));
    if (width < kPanel || steps > inputs) std::fill_n(to, kPanel * steps, Bfloat16{0});
    if (transpose)
      for (long k = 0; k < inputs; k += kLanes)
        for (int n = 0; n < width; n += kLanes) {
          F16 lines[kLanes];
          loadColumns(lines, weight + (first + n) * inputs + k, inputs, width - n, inputs - k);
          for (long i = k; i < std::min(inputs, k + kLanes); i++)
            storeRounded(to + (i ^ 1) * kPanel + n, lines[i - k]);
        }
    else
      for (long k = 0; k < inputs; k += 2) {
        const Element* from = weight + k * outputs + first;
        const bool both = k + 1 < inputs;
        int n = 0;
        if constexpr (sizeof(Element) == sizeof(float))
          for (; n + kLanes <= width; n += kLanes) {
            storeRounded(to + (k + 1) * kPanel + n, load(from + n));
            if (both) storeRounded(to + k * kPanel + n, load(from + outputs + n));
          }
        for (; n < width; n++) {
          to[(k + 1) * kPanel + n] = rounded(from[n]);
          if (both) to[k * kPanel + n] = rounded(from[outputs + n]);
        }
      }
  });
}

/// Rows [rows, inputs], rounded, each pair of inputs in reverse order. Valid until this thread rounds the next.
inline const float* roundedRows(Pool& pool, const float* x, long rows, long inputs) {
  const long steps = 2 * pairsOf(inputs);
  static thread_local Scratch scratch;
  float* factors = scratch.floats(rows * steps);
  forRowBlocks(pool, rows, inputs, [&](long first, long end) {
    for (long r = first; r < end; r++) {
      float* to = factors + r * steps;
      const float* from = x + r * inputs;
      long k = 0;
      for (; k + kLanes <= inputs; k += kLanes) store(to + k, swapNeighbours(roundedLine(load(from + k))));
      for (; k + 1 < inputs; k += 2) {
        to[k] = roundedFloat(from[k + 1]);
        to[k + 1] = roundedFloat(from[k]);
      }
      if (steps > inputs) to[inputs] = roundedFloat(from[inputs - 1]), to[inputs - 1] = 0.f;
    }
  });
  return factors;
}

inline void bfloat16Linear(Pool& pool, float* out, const float* x, const Bfloat16* packed, long rows, long inputs,
                         long outputs, bool accumulate) {
  linear(pool, out, roundedRows(pool, x, rows, inputs), packed, rows, 2 * pairsOf(inputs), outputs, accumulate);
}

/// The rows of a matrix, rounded, each pair of them in reverse order; an odd one out has a row of zeros before it.
inline void roundRowPairs(Pool& pool, float* to, const float* from, long rows, long width) {
  if (rows % 2 == 1) std::fill_n(to + (rows - 1) * width, width, 0.f);
  forRowBlocks(pool, rows, width, [&](long first, long end) {
    for (long r = first; r < end; r++) {
      float* line = to + (r ^ 1) * width;
      const float* row = from + r * width;
      forVectors(
          width, [&](long i) { store(line + i, roundedLine(load(row + i))); },
          [&](long i, int rest) { storePartial(line + i, roundedLine(loadPartial(row + i, rest)), rest); });
    }
  });
}

inline void bfloat16LinearWeightGradient(Pool& pool, float* dWeight, const float* x, const float* dOut, long rows,
                                       long inputs, long outputs) {
  const long steps = 2 * pairsOf(rows);
  static thread_local Scratch ofInputs, ofOutputs;
  float* factors = ofInputs.floats(steps * inputs);
  float* gradients = ofOutputs.floats(steps * outputs);
  roundRowPairs(pool, factors, x, rows, inputs);
  roundRowPairs(pool, gradients, dOut, rows, outputs);
  weightGradient(pool, dWeight, factors, gradients, steps, inputs, outputs);
}

}  // namespace DRMAS_ISA
}  // namespace drmas
