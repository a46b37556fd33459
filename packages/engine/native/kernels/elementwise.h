// Operations without sums over a row: rotary embedding, short convolution, SwiGLU, GEGLU, token embedding, vector
// addition.
#pragma once
#include <algorithm>

#include "norm.h"
#include "../simd/simd.h"
#include "../types.h"

namespace drmas {
namespace DRMAS_ISA {

/// (a, b) of each half-split pair of a query or key becomes (a cos − b sin, b cos + a sin); `inverse` negates sin.
inline void rope(Pool& pool, float* qkv, const float* table, const int32_t* positions, long rows, Heads h,
                 bool inverse) {
  const int headDim = h.headDim, half = headDim / 2, turned = h.heads + h.kvHeads;
  const long stride = h.stride();
  const F16 sign = broadcast(inverse ? -1.f : 1.f);
  forRows(pool, rows, [&](long r) {
    const float* cosines = table + static_cast<long>(positions[r]) * headDim;
    const float* sines = cosines + half;
    if (half == kLanes / 2) {  // a head is one vector: (a, b) (c, c) + (b, a) (-s, s) has the same bits
      alignas(64) float both[2][kLanes];
      for (int i = 0; i < half; i++) {
        both[0][i] = both[0][half + i] = cosines[i];
        both[1][half + i] = sines[i];
        both[1][i] = -sines[i];
      }
      const F16 c = load(both[0]), s = load(both[1]) * sign;
      float* head = qkv + r * stride;
      for (int k = 0; k < turned; k++, head += headDim) {
        const F16 pair = load(head);
        store(head, pair * c + swapHalves(pair) * s);
      }
      return;
    }
    for (int i = 0; i < half; i += kLanes) {
      const int n = half - i;
      const F16 c = loadUpTo(cosines + i, n), s = loadUpTo(sines + i, n) * sign;
      float* a = qkv + r * stride + i;
      F16 x1 = loadUpTo(a, n), x2 = loadUpTo(a + half, n);
      for (int k = 0; k < turned; k++, a += headDim) {
        const F16 y1 = x1 * c - x2 * s, y2 = x2 * c + x1 * s;
        // Before this head is stored: a partial store reaches into the next head, and a load from there would wait
        // for it.
        if (k + 1 < turned) x1 = loadUpTo(a + headDim, n), x2 = loadUpTo(a + headDim + half, n);
        storeUpTo(a, y1, n);
        storeUpTo(a + half, y2, n);
      }
    }
  });
}

/// Calls body(row, tap) for a row and those before it in its sequence, as far as the taps reach.
template <class Body>
inline void forWindow(const int32_t* previous, long row, long taps, const Body& body) {
  for (long tap = taps - 1; tap >= 0; tap--) {
    body(row, tap);
    if (previous[row] == row) return;
    row = previous[row];
  }
}

/// Calls body(c, n) for columns in steps of a vector; n columns are left from c on.
template <class Body>
inline void forColumns(long first, long last, const Body& body) {
  for (long c = first; c < last; c += kLanes) body(c, static_cast<int>(last - c));
}

/// out = C · Σ weight[tap] · (B · x), over the taps from the last one, a token's own, backwards.
inline void convolution(Pool& pool, float* out, const float* bcx, const float* weight, const int32_t* previous,
                        long rows, long width, long taps) {
  forRows(pool, rows, [&](long r) {
    forColumns(0, width, [&](long c, int n) {
      F16 sum = zero();
      forWindow(previous, r, taps, [&](long row, long tap) {
        const float* at = bcx + row * 3 * width + c;
        sum = fma(loadUpTo(weight + tap * width + c, n), loadUpTo(at, n) * loadUpTo(at + 2 * width, n), sum);
      });
      storeUpTo(out + r * width + c, loadUpTo(bcx + (r * 3 + 1) * width + c, n) * sum, n);
    });
  });
}

/// With u = B · x and g = dOut · C: dC = dOut · Σ weight[tap] · u, dWeight[tap] += g · u and du += g · weight[tap] for
/// all tokens of a window, then dB = du · x and dx = du · B. Until then du is held in dx.
inline void convolutionBackward(Pool& pool, float* dBcx, float* dWeight, const float* dOut, const float* bcx,
                                const float* weight, const int32_t* previous, long rows, long width, long taps) {
  constexpr long kColumns = 64;
  pool.run((width + kColumns - 1) / kColumns, [&](long task) {
    const long first = task * kColumns, last = std::min(width, first + kColumns);
    for (long r = 0; r < rows; r++) std::fill_n(dBcx + (r * 3 + 2) * width + first, last - first, 0.f);
    for (long r = 0; r < rows; r++)
      forColumns(first, last, [&](long c, int n) {
        const F16 d = loadUpTo(dOut + r * width + c, n), g = d * loadUpTo(bcx + (r * 3 + 1) * width + c, n);
        F16 sum = zero();
        forWindow(previous, r, taps, [&](long row, long tap) {
          const float* at = bcx + row * 3 * width + c;
          float *dU = dBcx + (row * 3 + 2) * width + c, *dTap = dWeight + tap * width + c;
          const F16 u = loadUpTo(at, n) * loadUpTo(at + 2 * width, n), w = loadUpTo(weight + tap * width + c, n);
          sum = fma(w, u, sum);
          storeUpTo(dTap, fma(g, u, loadUpTo(dTap, n)), n);
          storeUpTo(dU, fma(g, w, loadUpTo(dU, n)), n);
        });
        storeUpTo(dBcx + (r * 3 + 1) * width + c, d * sum, n);
      });
    for (long r = 0; r < rows; r++)
      forColumns(first, last, [&](long c, int n) {
        const float* at = bcx + r * 3 * width + c;
        float *dB = dBcx + r * 3 * width + c, *dX = dB + 2 * width;
        const F16 dU = loadUpTo(dX, n);
        storeUpTo(dB, dU * loadUpTo(at + 2 * width, n), n);
        storeUpTo(dX, dU * loadUpTo(at, n), n);
      });
  });
}

inline void convolutionCached(Pool& pool, float* out, float* products, const float* bcx, const float* weight,
                              const int32_t* slots, const int32_t* positions, long rows, long capacity, long width,
                              long taps) {
  const auto productOf = [&](long r) { return products + (slots[r] * capacity + positions[r]) * width; };
  forRows(pool, rows, [&](long r) {
    const float* at = bcx + r * 3 * width;
    float* to = productOf(r);
    forColumns(0, width,
               [&](long c, int n) { storeUpTo(to + c, loadUpTo(at + c, n) * loadUpTo(at + 2 * width + c, n), n); });
  });
  forRows(pool, rows, [&](long r) {
    const float* from = productOf(r);
    const long seen = std::min<long>(taps, positions[r] + 1);
    forColumns(0, width, [&](long c, int n) {
      F16 sum = zero();
      for (long j = 0; j < seen; j++)
        sum = fma(loadUpTo(weight + (taps - 1 - j) * width + c, n), loadUpTo(from - j * width + c, n), sum);
      storeUpTo(out + r * width + c, loadUpTo(bcx + (r * 3 + 1) * width + c, n) * sum, n);
    });
  });
}

inline void convolutionCopy(Pool&, float* products, long from, long to, long length, long capacity, long width) {
  std::copy_n(products + from * capacity * width, length * width, products + to * capacity * width);
}

/// out = value(gate, up) for every row.
template <typename Value>
inline void gated(Pool& pool, float* out, const float* gateUp, long rows, long feedForward, const Value& value) {
  forRows(pool, rows, [&](long r) {
    const float *gate = gateUp + r * 2 * feedForward, *up = gate + feedForward;
    float* to = out + r * feedForward;
    forVectors(
        feedForward, [&](long i) { store(to + i, value(load(gate + i), load(up + i))); },
        [&](long i, int rest) {
          storePartial(to + i, value(loadPartial(gate + i, rest), loadPartial(up + i, rest)), rest);
        });
  });
}

/// dGate and dUp = both(gate, up, dOut, dGate, dUp) for every row.
template <typename Both>
inline void gatedBackward(Pool& pool, float* dGateUp, const float* dOut, const float* gateUp, long rows,
                          long feedForward, const Both& both) {
  forRows(pool, rows, [&](long r) {
    const float *gate = gateUp + r * 2 * feedForward, *up = gate + feedForward, *d = dOut + r * feedForward;
    float *dGate = dGateUp + r * 2 * feedForward, *dUp = dGate + feedForward;
    F16 toGate, toUp;
    forVectors(
        feedForward,
        [&](long i) {
          both(load(gate + i), load(up + i), load(d + i), toGate, toUp);
          store(dGate + i, toGate);
          store(dUp + i, toUp);
        },
        [&](long i, int rest) {
          both(loadPartial(gate + i, rest), loadPartial(up + i, rest), loadPartial(d + i, rest), toGate, toUp);
          storePartial(dGate + i, toGate, rest);
          storePartial(dUp + i, toUp, rest);
        });
  });
}

/// out = silu(gate) · up, silu(g) = g / (1 + e^-g).
inline void swiglu(Pool& pool, float* out, const float* gateUp, long rows, long feedForward) {
  const F16 one = broadcast(1.f);
  gated(pool, out, gateUp, rows, feedForward, [&](F16 g, F16 u) { return g / (one + exp(zero() - g)) * u; });
}

/// With s = 1 / (1 + e^-g): dGate = dOut · up · s (1 + g (1 − s)), dUp = dOut · g s.
inline void swigluBackward(Pool& pool, float* dGateUp, const float* dOut, const float* gateUp, long rows,
                           long feedForward) {
  const F16 one = broadcast(1.f);
  gatedBackward(pool, dGateUp, dOut, gateUp, rows, feedForward, [&](F16 g, F16 u, F16 grad, F16& toGate, F16& toUp) {
    const F16 s = one / (one + exp(zero() - g));
    toGate = grad * u * s * fma(g, one - s, one);
    toUp = grad * g * s;
  });
}

/// 2 sqrt(2 / π) and the factor of g³ in GELU's approximation by tanh: gelu(g) = g / (1 + e^-z) with
/// z = a (g + b g³), the same as g (1 + tanh(z / 2)) / 2.
constexpr float kGeluScale = 1.5957691216057308f, kGeluCube = 0.044715f;

/// 1 / (1 + e^-z).
inline F16 geluGate(F16 g) {
  const F16 one = broadcast(1.f);
  const F16 z = g * broadcast(kGeluScale) * fma(g * g, broadcast(kGeluCube), one);
  return one / (one + exp(zero() - z));
}

/// out = gelu(gate) · up.
inline void geglu(Pool& pool, float* out, const float* gateUp, long rows, long feedForward) {
  gated(pool, out, gateUp, rows, feedForward, [](F16 g, F16 u) { return g * geluGate(g) * u; });
}

/// With s = 1 / (1 + e^-z): dGate = dOut · up · s (1 + g (1 − s) z'), dUp = dOut · g s.
inline void gegluBackward(Pool& pool, float* dGateUp, const float* dOut, const float* gateUp, long rows,
                          long feedForward) {
  const F16 one = broadcast(1.f);
  gatedBackward(pool, dGateUp, dOut, gateUp, rows, feedForward, [&](F16 g, F16 u, F16 grad, F16& toGate, F16& toUp) {
    const F16 s = geluGate(g);
    const F16 slope = broadcast(kGeluScale) * fma(g * g, broadcast(3.f * kGeluCube), one);
    toGate = grad * u * s * fma(g * slope, one - s, one);
    toUp = grad * g * s;
  });
}

/// Element: float or Bfloat16.
template <class Element>
inline void embed(Pool& pool, float* out, const Element* table, const int32_t* tokens, long rows, long width) {
  forRows(pool, rows, [&](long r) {
    const Element* from = table + tokens[r] * width;
    float* to = out + r * width;
    forVectors(
        width, [&](long i) { store(to + i, load(from + i)); },
        [&](long i, int rest) { storePartial(to + i, loadPartial(from + i, rest), rest); });
  });
}

/// dTable[token] += dOut[r], rows in order; threads share the columns, never a row's order.
inline void embedBackward(Pool& pool, float* dTable, const float* dOut, const int32_t* tokens, long rows, long width) {
  constexpr long kColumns = 64;
  pool.run((width + kColumns - 1) / kColumns, [&](long task) {
    const long first = task * kColumns, last = std::min(width, first + kColumns);
    for (long r = 0; r < rows; r++) {
      float* to = dTable + tokens[r] * width;
      const float* from = dOut + r * width;
      for (long c = first; c < last; c++) to[c] += from[c];
    }
  });
}

inline void add(Pool& pool, float* out, const float* x, long length) {
  constexpr long kChunk = 16384;
  pool.run((length + kChunk - 1) / kChunk, [&](long task) {
    const long last = std::min(length, (task + 1) * kChunk);
    for (long i = task * kChunk; i < last; i++) out[i] += x[i];
  });
}

}  // namespace DRMAS_ISA
}  // namespace drmas
