// A tile of a matrix product: sums of kTileRows rows by one panel of kPanel columns, which stay in registers.
//
// Order of accumulation: for every output element one register lane runs over the steps in order, one fused
// multiply-add after the other. Held to it by the contract suite's row-invariance and thread tests.
#pragma once
#include <utility>

#include "../../simd/simd.h"
#include "../../types.h"

namespace drmas {
namespace DRMAS_ISA {

#if defined(__AVX512F__)
constexpr int kVectors = 2;    // vectors in a panel
constexpr int kTileRows = 12;  // 24 of the 32 registers hold sums
#elif defined(__AVX2__)
constexpr int kVectors = 1;
constexpr int kTileRows = 6;  // 12 of the 16 registers hold sums
#elif defined(__wasm_simd128__)
constexpr int kVectors = 1;
constexpr int kTileRows = 2;  // 8 of the 16 registers hold sums: V8 computes all products of a step before it adds any
#elif defined(__aarch64__)
constexpr int kVectors = 1;
constexpr int kTileRows = 6;  // 24 of the 32 registers hold sums
#else
constexpr int kVectors = 1;
constexpr int kTileRows = 2;  // 8 of the 16 registers hold sums
#endif
constexpr int kPanel = kVectors * kLanes;
// How far ahead of their use weights are prefetched: where rows are few they come from memory, and the processor's
// prefetcher alone fetches too little.
constexpr long kAheadBytes = 8192;

enum class Write { Overwrite, AddSum, Continue };

/// How the left operand lies: its steps one after the other along a row, as the inputs of a layer do, or its rows along
/// a step.
enum class Steps { AlongRows, RowsAlong };

/// What the elements of a panel are multiplied with.
template <class Element>
struct FactorOf {
  using type = float;
};
template <class Element>
using Factor = typename FactorOf<Element>::type;

/// The same pointer. Compilers do not know its origin.
template <class Value>
inline Value* opaque(Value* pointer) {
  asm("" : "+r"(pointer));
  return pointer;
}

/// kRows x kPanel tile of out: the sum over k of a's row r at step k times the weights of step k; `stride` is the
/// distance of a's rows, or of its steps. steps(next) calls next(weights) with the vectors of each step in order.
/// Continue starts from the contents of `out`, AddSum adds the finished sum to them.
template <int kRows, Steps kSteps, class Left, class EachStep>
inline __attribute__((always_inline)) void sumTile(float* out, long outStride, int width, const Left* a, long stride,
                                                   Write write, const EachStep& steps) {
  F16 sum[kRows][kVectors];
  const auto at = [&](int r, int v) { return out + r * outStride + v * kLanes; };
  const auto read = [&](int r, int v) {
    const int rest = width - v * kLanes;
    return rest >= kLanes ? load(at(r, v)) : rest > 0 ? loadPartial(at(r, v), rest) : zero();
  };
#pragma GCC unroll 12
  for (int r = 0; r < kRows; r++)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; v++) sum[r][v] = write == Write::Continue ? read(r, v) : zero();

  // A pointer for each three rows of a: an instruction can address two more by the distance of rows. Compilers that see
  // through it keep one for each row, in more registers than there are.
  constexpr bool kAlongRows = kSteps == Steps::AlongRows;
  constexpr int kTogether = 3, kPointers = kAlongRows ? (kRows + kTogether - 1) / kTogether : 1;
  const Left* left[kPointers];
#pragma GCC unroll 4
  for (int i = 0; i < kPointers; i++) left[i] = a + kTogether * i * stride;
  steps([&](const auto* weights) __attribute__((always_inline)) {
#pragma GCC unroll 12
    for (int r = 0; r < kRows; r++) {
      const auto value = broadcast(kAlongRows ? left[r / kTogether][r % kTogether * stride] : left[0][r]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; v++) sum[r][v] = fma(value, weights[v], sum[r][v]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < kPointers; i++) left[i] = opaque(left[i] + (kAlongRows ? 1 : stride));
  });

#pragma GCC unroll 12
  for (int r = 0; r < kRows; r++)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; v++) {
      const F16 result = write == Write::AddSum ? read(r, v) + sum[r][v] : sum[r][v];
      const int rest = width - v * kLanes;
      if (rest >= kLanes)
        store(at(r, v), result);
      else if (rest > 0)
        storePartial(at(r, v), result, rest);
    }
}

/// `sumTile` of a panel: b[k * kPanel + lane] are the weights of step k.
template <int kRows, Steps kSteps, class Element>
inline void tile(float* out, long outStride, int width, const Factor<Element>* a, long stride, const Element* b,
                 long steps, Write write) {
  sumTile<kRows, kSteps>(out, outStride, width, a, stride, write, [&](const auto& next) __attribute__((always_inline)) {
    const auto step = [&]() __attribute__((always_inline)) {
      if constexpr (kSteps == Steps::AlongRows)
        for (size_t line = 0; line < kPanel * sizeof(Element); line += 64)
          __builtin_prefetch(reinterpret_cast<const char*>(b) + kAheadBytes + line);
      decltype(load(b)) weights[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; v++) weights[v] = load(b + v * kLanes);
      next(weights);
      b += kPanel;
    };
    for (long k = 0; k < steps; k++) {
      step();
#if defined(__wasm_simd128__)
      // Two steps a round, with an exit between them: V8 then still adds up one step's products before it computes the
      // next's.
      if (++k == steps) break;
      step();
#endif
    }
  });
}

template <class Element>
using Tile = void (*)(float*, long, int, const Factor<Element>*, long, const Element*, long, Write);

template <Steps kSteps, class Element, int... kRows>
constexpr Tile<Element> tileFor(int rows, std::integer_sequence<int, kRows...>) {
  constexpr Tile<Element> tiles[] = {tile<kRows + 1, kSteps, Element>...};
  return tiles[rows - 1];
}

/// The tile for 1..kTileRows rows.
template <Steps kSteps, class Element>
inline Tile<Element> tileOf(int rows) {
  return tileFor<kSteps, Element>(rows, std::make_integer_sequence<int, kTileRows>{});
}

/// Prefetches the next tile of as many rows, which will be added to or overwritten, while this one is computed.
inline void callForTile(const float* out, long outStride) {
  for (int r = 0; r < kTileRows; r++)
    for (int v = 0; v < kVectors; v++) __builtin_prefetch(out + r * outStride + v * kLanes, 1);
}

}  // namespace DRMAS_ISA
}  // namespace drmas
