// The product in bfloat16 with a matrix in blocks: bfloat16.h's sums over panels that are unpacked as blocks.h does.
#pragma once
#include "bfloat16.h"
#include "blocks.h"

namespace drmas {
namespace DRMAS_ISA {

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

}  // namespace DRMAS_ISA
}  // namespace drmas
