// Products whose operands are rounded to bfloat16, where no instruction takes bfloat16: the rounded numbers become
// floats again and go through the kernels of linear.h. Each pair of neighbours lies in reverse order, so that these
// sum in the order of rounding.h.
#pragma once
#include <algorithm>

#include "blocks.h"
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
          for (long i = k; i < std::min(inputs, k + kLanes); i++) {
            alignas(64) float line[kLanes];
            store(line, lines[i - k]);
            for (int j = 0; j < kLanes; j++) to[(i ^ 1) * kPanel + n + j] = rounded(line[j]);
          }
        }
    else
      for (long k = 0; k < inputs; k += 2) {
        const Element* from = weight + k * outputs + first;
        const bool both = k + 1 < inputs;
        for (int n = 0; n < width; n++) {
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
      for (long k = 0; k + 1 < inputs; k += 2) {
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

inline void bfloat16BlockLinearTransposed(Pool& pool, float* out, const float* x, const int32_t* blocks, long format,
                                          long rows, long inputs, long outputs, bool accumulate) {
  const float* factors = roundedRows(pool, x, rows, inputs);
  inBlocks(blocks, format, outputs, inputs, [&](const auto& matrix) {
    linearUnpacked(pool, out, factors, rows, 2 * pairsOf(inputs), outputs, accumulate,
                   [&](float* to, long column, long first, long count) {
                     matrix.unpackTransposed(to, column, first, count);
                     for (float* pair = to; pair < to + count * kPanel; pair += 2 * kPanel)
                       for (int n = 0; n < kPanel; n++) {
                         const float one = roundedFloat(pair[n]);
                         pair[n] = roundedFloat(pair[kPanel + n]);
                         pair[kPanel + n] = one;
                       }
                   });
  });
}

/// The rows of a matrix, rounded, each pair of them in reverse order; an odd one out has a row of zeros before it.
inline void roundRowPairs(Pool& pool, float* to, const float* from, long rows, long width) {
  if (rows % 2 == 1) std::fill_n(to + (rows - 1) * width, width, 0.f);
  forRowBlocks(pool, rows, width, [&](long first, long end) {
    for (long r = first; r < end; r++)
      for (long i = 0; i < width; i++) to[(r ^ 1) * width + i] = roundedFloat(from[r * width + i]);
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
