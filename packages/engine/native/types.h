// The structures that kernels take beside numbers and buffers.
#pragma once
#include <cstddef>
#include <cstdint>

#include "pool.h"

namespace drmas {

/// The upper half of the bits of a float.
using Bfloat16 = uint16_t;

/// The settings of one AdamW step.
struct AdamW {
  double learningRate, beta1, beta2, epsilon, weightDecay, step, gradientScale;
};

/// The heads of an attention layer. A row of qkv holds its queries, keys and values, head after head.
struct Heads {
  int heads, kvHeads, headDim;
  int window = 0;  // the positions that a query sees at most, its own included; 0: all
  int stride() const { return (heads + 2 * kvHeads) * headDim; }  // floats of a row of qkv
  int keysAt() const { return heads * headDim; }                  // where a row's keys begin, after its queries
  int group() const { return heads / kvHeads; }                   // query heads that share a key-value head
  long firstSeen(long position) const { return window > 0 && position >= window ? position + 1 - window : 0; }
};

}  // namespace drmas
