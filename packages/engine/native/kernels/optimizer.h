// AdamW (Loshchilov & Hutter 2019) and the gradient's norm.
#pragma once
#include <algorithm>

#include "../simd/doubles.h"
#include "../simd/simd.h"
#include "../types.h"

namespace drmas {
namespace DRMAS_ISA {

constexpr long kChunk = 8192;

/// The sums of squares of kChunks chunks of `length` numbers, at the same time, since within a chunk each sum waits for
/// the one before it: eight double sums a chunk, added up in order.
template <int kChunks>
inline void sumChunks(double* sums, const float* x, long length) {
  Doubles8 lanes[kChunks] = {};
  long i = 0;
  for (; i + 8 <= length; i += 8)
#pragma GCC unroll 4
    for (int c = 0; c < kChunks; c++) addSquares(lanes[c], x + c * kChunk + i);
  for (int c = 0; c < kChunks; c++) {
    alignas(64) double lane[8];
    std::memcpy(lane, &lanes[c], sizeof lane);
    for (long j = 0; i + j < length; j++) lane[j] += static_cast<double>(x[i + j]) * x[i + j];
    sums[c] = 0;
    for (double part : lane) sums[c] += part;
  }
}

/// Chunks are added up in order.
inline double sumOfSquares(Pool& pool, const float* x, long length) {
  const long chunks = (length + kChunk - 1) / kChunk;
  std::vector<double> sums(static_cast<size_t>(chunks));
  pool.run((chunks + kSumsTogether - 1) / kSumsTogether, [&](long task) {
    const long first = task * kSumsTogether, last = std::min(chunks, first + kSumsTogether);
    if (first + kSumsTogether == last && last * kChunk <= length)
      return sumChunks<kSumsTogether>(sums.data() + first, x + first * kChunk, kChunk);
    for (long c = first; c < last; c++)
      sumChunks<1>(sums.data() + c, x + c * kChunk, std::min(kChunk, length - c * kChunk));
  });
  double total = 0;
  for (double sum : sums) total += sum;
  return total;
}

inline void adamw(Pool& pool, float* weights, const float* gradient, float* firstMoment, float* secondMoment,
                  long length, const AdamW& s) {
  // Constants in double, as torch has them; the element-wise arithmetic in float.
  const float decay = static_cast<float>(1 - s.learningRate * s.weightDecay);
  const float beta1 = static_cast<float>(s.beta1), rest1 = static_cast<float>(1 - s.beta1);
  const float beta2 = static_cast<float>(s.beta2), rest2 = static_cast<float>(1 - s.beta2);
  const float stepSize = static_cast<float>(s.learningRate / (1 - std::pow(s.beta1, s.step)));
  const float rootCorrection = static_cast<float>(std::sqrt(1 - std::pow(s.beta2, s.step)));
  const float epsilon = static_cast<float>(s.epsilon), scale = static_cast<float>(s.gradientScale);
  const auto update = [=](F16& w, F16& m, F16& v, F16 g) {
    g = g * broadcast(scale);
    m = fma(broadcast(rest1), g, m * broadcast(beta1));
    v = fma(broadcast(rest2) * g, g, v * broadcast(beta2));
    const F16 denominator = sqrt(v) / broadcast(rootCorrection) + broadcast(epsilon);
    w = w * broadcast(decay) - broadcast(stepSize) * m / denominator;
  };
  // How far ahead of their use numbers are prefetched: of four arrays at once, three of them written to, the
  // processor's prefetcher brings too little.
  constexpr long kAhead = 512;
  pool.run((length + kChunk - 1) / kChunk, [&](long task) {
    const long first = task * kChunk, count = std::min(length, first + kChunk) - first;
    float *w = weights + first, *m = firstMoment + first, *v = secondMoment + first;
    const float* g = gradient + first;
    forVectors(
        count,
        [&](long i) {
          // The processor's prefetcher alone is too slow for four arrays; three of them are written too.
          __builtin_prefetch(w + i + kAhead, 1);
          __builtin_prefetch(m + i + kAhead, 1);
          __builtin_prefetch(v + i + kAhead, 1);
          __builtin_prefetch(g + i + kAhead);
          F16 wi = load(w + i), mi = load(m + i), vi = load(v + i);
          update(wi, mi, vi, load(g + i));
          store(w + i, wi);
          store(m + i, mi);
          store(v + i, vi);
        },
        [&](long i, int rest) {
          F16 wi = loadPartial(w + i, rest), mi = loadPartial(m + i, rest), vi = loadPartial(v + i, rest);
          update(wi, mi, vi, loadPartial(g + i, rest));
          storePartial(w + i, wi, rest);
          storePartial(m + i, mi, rest);
          storePartial(v + i, vi, rest);
        });
  });
}

}  // namespace DRMAS_ISA
}  // namespace drmas
