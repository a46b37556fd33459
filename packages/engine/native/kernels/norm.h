// RMSNorm. y[c] = x[c] · inv · gain[c] with inv = 1 / sqrt(mean(x²) + epsilon).
// The sum of squares of a row runs through 16 lanes in steps of 16, then the lane tree. dGain[c] runs over rows in
// order.
#pragma once
#include <algorithm>

#include "../simd/simd.h"
#include "../types.h"

namespace drmas {
namespace DRMAS_ISA {

constexpr long kRowsPerTask = 64;

inline long rowTasks(long rows) { return (rows + kRowsPerTask - 1) / kRowsPerTask; }

/// Calls body(row) for all rows, in blocks over the threads.
template <class Body>
inline void forRows(Pool& pool, long rows, const Body& body) {
  pool.run(rowTasks(rows), [&](long task) {
    const long last = std::min(rows, (task + 1) * kRowsPerTask);
    for (long r = task * kRowsPerTask; r < last; r++) body(r);
  });
}

/// One row; `to` may be `in`. Returns inv.
inline float normRow(float* to, const float* in, const float* gain, long width, float epsilon) {
  F16 squares = zero();
  forVectors(
      width, [&](long i) { const F16 v = load(in + i); squares = fma(v, v, squares); },
      [&](long i, int rest) { const F16 v = loadPartial(in + i, rest); squares = fma(v, v, squares); });
  const float inv = 1.f / std::sqrt(sumLanes(squares) / static_cast<float>(width) + epsilon);
  const F16 scale = broadcast(inv);
  forVectors(
      width, [&](long i) { store(to + i, load(in + i) * scale * load(gain + i)); },
      [&](long i, int rest) {
        storePartial(to + i, loadPartial(in + i, rest) * scale * loadPartial(gain + i, rest), rest);
      });
  return inv;
}

/// dx[c] = inv · gain[c] · d[c] − x[c] · inv³ / width · Σ gain · d · x, of one row. Added to `to`, or written over
/// it, which may then be `d`.
template <bool kAdd>
inline void normRowBackward(float* to, const float* d, const float* in, const float* gain, float inv, long width) {
  F16 dot = zero();
  forVectors(
      width, [&](long i) { dot = fma(load(gain + i) * load(d + i), load(in + i), dot); },
      [&](long i, int rest) {
        dot = fma(loadPartial(gain + i, rest) * loadPartial(d + i, rest), loadPartial(in + i, rest), dot);
      });
  const F16 scale = broadcast(inv);
  const F16 back = broadcast(-inv * inv * inv / static_cast<float>(width) * sumLanes(dot));
  forVectors(
      width,
      [&](long i) {
        const F16 dx = fma(load(in + i), back, load(gain + i) * load(d + i) * scale);
        store(to + i, kAdd ? load(to + i) + dx : dx);
      },
      [&](long i, int rest) {
        const F16 direct = loadPartial(gain + i, rest) * loadPartial(d + i, rest) * scale;
        const F16 dx = fma(loadPartial(in + i, rest), back, direct);
        storePartial(to + i, kAdd ? loadPartial(to + i, rest) + dx : dx, rest);
      });
}

inline void rmsNorm(Pool& pool, float* out, float* inverse, const float* x, const float* gain, long rows, long width,
                    float epsilon) {
  forRows(pool, rows, [&](long r) { inverse[r] = normRow(out + r * width, x + r * width, gain, width, epsilon); });
}

/// sums[c] += dOut · x · inverse, rows in order, of kVectors vectors of columns, each with `lanes` columns.
template <int kVectors>
inline void addGains(float* sums, const float* dOut, const float* x, const float* inverse, long rows, long width,
                     int lanes) {
  F16 sum[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; v++) sum[v] = loadUpTo(sums + v * kLanes, lanes);
  for (long r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; v++) {
      const long at = r * width + v * kLanes;
      sum[v] = fma(loadUpTo(dOut + at, lanes) * loadUpTo(x + at, lanes), broadcast(inverse[r]), sum[v]);
    }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; v++) storeUpTo(sums + v * kLanes, sum[v], lanes);
}

/// dx is added to; dGain[c] += Σ_r dOut · x · inv.
inline void rmsNormBackward(Pool& pool, float* dx, float* dGain, const float* dOut, const float* x, const float* gain,
                            const float* inverse, long rows, long width) {
  // As many rows as are still in the second-level cache when the gradient of the gain is summed over them.
  const long blockRows = kRowsPerTask * std::max<long>(1, 131072 / width / kRowsPerTask);
  constexpr int kVectors = 4;
  constexpr long kColumns = kVectors * kLanes;
  static thread_local Scratch scratch;
  float* sums = scratch.floats(static_cast<size_t>(width));
  std::fill_n(sums, width, 0.f);
  for (long first = 0; first < rows; first += blockRows) {
    const long count = std::min(blockRows, rows - first);
    const float *d = dOut + first * width, *in = x + first * width, *inv = inverse + first;
    forRows(pool, count, [&](long r) {
      normRowBackward<true>(dx + (first + r) * width, d + r * width, in + r * width, gain, inv[r], width);
    });
    pool.run((width + kColumns - 1) / kColumns, [&](long task) {
      const long begin = task * kColumns;
      if (begin + kColumns <= width)
        return addGains<kVectors>(sums + begin, d + begin, in + begin, inv, count, width, kLanes);
      for (long c = begin; c < width; c += kLanes)
        addGains<1>(sums + c, d + c, in + c, inv, count, width, static_cast<int>(std::min<long>(kLanes, width - c)));
    });
  }
  for (long c = 0; c < width; c++) dGain[c] += sums[c];
}

/// rmsNorm of every query and key of every row, in place; a head is summed as a row that stands alone would be.
inline void headNorm(Pool& pool, float* qkv, float* queryInverse, float* keyInverse, const float* queryGain,
                     const float* keyGain, long rows, Heads h, float epsilon) {
  forRows(pool, rows, [&](long r) {
    const auto normHeads = [&](float* at, float* inverse, const float* gain, int count) {
      for (int k = 0; k < count; k++, at += h.headDim) inverse[k] = normRow(at, at, gain, h.headDim, epsilon);
    };
    float* row = qkv + r * h.stride();
    normHeads(row, queryInverse + r * h.heads, queryGain, h.heads);
    normHeads(row + h.keysAt(), keyInverse + r * h.kvHeads, keyGain, h.kvHeads);
  });
}

/// dQkv becomes the gradient of headNorm's input. Before that, dGain[c] += Σ_r Σ_h dQkv · qkv · inverse: rows in
/// order, and in each row its heads.
inline void headNormBackward(Pool& pool, float* dQkv, float* dQueryGain, float* dKeyGain, const float* qkv,
                             const float* queryGain, const float* keyGain, const float* queryInverse,
                             const float* keyInverse, long rows, Heads h) {
  const long stride = h.stride();
  pool.run((h.headDim + kLanes - 1) / kLanes, [&](long column) {
    const int c = static_cast<int>(column) * kLanes;
    const int rest = h.headDim - c;
    const auto addGain = [&](float* dGain, long first, const float* inverse, int count) {
      F16 sum = zero();
      for (long r = 0; r < rows; r++)
        for (int k = 0; k < count; k++) {
          const long at = r * stride + first + k * h.headDim + c;
          sum = fma(loadUpTo(dQkv + at, rest) * loadUpTo(qkv + at, rest), broadcast(inverse[r * count + k]), sum);
        }
      storeUpTo(dGain + c, loadUpTo(dGain + c, rest) + sum, rest);
    };
    addGain(dQueryGain, 0, queryInverse, h.heads);
    addGain(dKeyGain, h.keysAt(), keyInverse, h.kvHeads);
  });
  forRows(pool, rows, [&](long r) {
    const auto unnormHeads = [&](long at, const float* inverse, const float* gain, int count) {
      for (int k = 0; k < count; k++, at += h.headDim)
        normRowBackward<false>(dQkv + at, dQkv + at, qkv + at, gain, inverse[k], h.headDim);
    };
    unnormHeads(r * stride, queryInverse + r * h.heads, queryGain, h.heads);
    unnormHeads(r * stride + h.keysAt(), keyInverse + r * h.kvHeads, keyGain, h.kvHeads);
  });
}

}  // namespace DRMAS_ISA
}  // namespace drmas
