// RMSNorm. y[c] = x[c] · inv · gain[c] with inv = 1 / sqrt(mean(x²) + epsilon).
// The sum of squares of a row runs through 16 lanes in steps of 16, then the lane tree. dGain[c] runs over rows in order.
#pragma once
#include <algorithm>

#include "simd.h"
#include "table.h"

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

inline void rmsNorm(Pool& pool, float* out, float* inverse, const float* x, const float* gain, long rows, long width,
                    float epsilon) {
  forRows(pool, rows, [&](long r) {
    const float* in = x + r * width;
    float* to = out + r * width;
    F16 squares = zero();
    forVectors(
        width, [&](long i) { const F16 v = load(in + i); squares = fma(v, v, squares); },
        [&](long i, int rest) { const F16 v = loadPartial(in + i, rest); squares = fma(v, v, squares); });
    const float inv = 1.f / std::sqrt(sumLanes(squares) / static_cast<float>(width) + epsilon);
    inverse[r] = inv;
    const F16 scale = broadcast(inv);
    forVectors(
        width, [&](long i) { store(to + i, load(in + i) * scale * load(gain + i)); },
        [&](long i, int rest) {
          storePartial(to + i, loadPartial(in + i, rest) * scale * loadPartial(gain + i, rest), rest);
        });
  });
}

/// dx[c] += inv · gain[c] · dOut[c] − x[c] · inv³ / width · Σ gain · dOut · x;  dGain[c] += Σ_r dOut · x · inv.
inline void rmsNormBackward(Pool& pool, float* dx, float* dGain, const float* dOut, const float* x, const float* gain,
                            const float* inverse, long rows, long width) {
  forRows(pool, rows, [&](long r) {
    const float *in = x + r * width, *d = dOut + r * width;
    float* to = dx + r * width;
    F16 dot = zero();
    forVectors(
        width, [&](long i) { dot = fma(load(gain + i) * load(d + i), load(in + i), dot); },
        [&](long i, int rest) {
          dot = fma(loadPartial(gain + i, rest) * loadPartial(d + i, rest), loadPartial(in + i, rest), dot);
        });
    const float inv = inverse[r];
    const F16 scale = broadcast(inv);
    const F16 back = broadcast(-inv * inv * inv / static_cast<float>(width) * sumLanes(dot));
    forVectors(
        width,
        [&](long i) {
          store(to + i, load(to + i) + fma(load(in + i), back, load(gain + i) * load(d + i) * scale));
        },
        [&](long i, int rest) {
          const F16 own = loadPartial(gain + i, rest) * loadPartial(d + i, rest) * scale;
          storePartial(to + i, loadPartial(to + i, rest) + fma(loadPartial(in + i, rest), back, own), rest);
        });
  });
  pool.run((width + kLanes - 1) / kLanes, [&](long column) {
    const long c = column * kLanes;
    const int rest = static_cast<int>(std::min<long>(kLanes, width - c));
    F16 sum = zero();
    if (rest == kLanes) {
      for (long r = 0; r < rows; r++)
        sum = fma(load(dOut + r * width + c) * load(x + r * width + c), broadcast(inverse[r]), sum);
      store(dGain + c, load(dGain + c) + sum);
    } else {
      for (long r = 0; r < rows; r++)
        sum = fma(loadPartial(dOut + r * width + c, rest) * loadPartial(x + r * width + c, rest), broadcast(inverse[r]),
                  sum);
      storePartial(dGain + c, loadPartial(dGain + c, rest) + sum, rest);
    }
  });
}

}  // namespace DRMAS_ISA
}  // namespace drmas
