// Linear layers. out[r][n] = sum over k of x[r][k] W[k][n].
//
// Order of accumulation: for every output element one register lane runs over k = 0..inputs-1 (or over the rows, for
// the weight gradient), one fused multiply-add after the other, whatever the tile, the block or the thread. Held to
// it by the contract suite's row-invariance and thread tests.
//
// Blocking: W is packed once per optimiser step into panels of kPanel columns, so that the innermost loop reads it with
// unit stride; a tile keeps kTileRows x kPanel sums in registers; a task is a block of rows times a range of panels.
//
// W may be of floats or of Bfloat16, which become floats as they are loaded: exactly, and nothing else differs, so
// that both give the same bits.
#pragma once
#include <algorithm>

#include "../simd/simd.h"
#include "../types.h"

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

inline long panelsOf(long outputs) { return (outputs + kPanel - 1) / kPanel; }

inline size_t packedSize(long inputs, long outputs) { return static_cast<size_t>(panelsOf(outputs)) * kPanel * inputs; }

template <class Element>
inline void pack(Pool& pool, Element* packed, const Element* weight, long inputs, long outputs, bool transpose) {
  pool.run(panelsOf(outputs), [&](long panel) {
    Element* to = packed + panel * kPanel * inputs;
    const long first = panel * kPanel;
    const int width = static_cast<int>(std::min<long>(kPanel, outputs - first));
    if (width < kPanel) std::fill_n(to, kPanel * inputs, Element{0});
    if (transpose) {
      // Sixteen inputs at a time: a cache line of each row of the weight is read once, a cache line of the panel
      // written.
      for (long k = 0; k < inputs; k += kLanes)
        for (int n = 0; n < width; n++)
          for (long i = k; i < std::min<long>(inputs, k + kLanes); i++)
            to[i * kPanel + n] = weight[(first + n) * inputs + i];
    } else {
      for (long k = 0; k < inputs; k++) std::copy_n(weight + k * outputs + first, width, to + k * kPanel);
    }
  });
}

enum class Write { Overwrite, AddSum, Continue };

/// What the elements of a panel are multiplied with.
template <class Element>
struct FactorOf {
  using type = float;
};
template <class Element>
using Factor = typename FactorOf<Element>::type;

/// kRows x kPanel tile of out: the sum over k of a[r * rowStride + k * stepStride] times b[k * kPanel + lane].
/// Continue starts from what `out` holds, AddSum adds the finished sum to it.
template <int kRows, class Element>
inline void tile(float* out, long outStride, int width, const Factor<Element>* a, long rowStride, long stepStride,
                 const Element* b, long steps, Write write) {
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

  const auto step = [&](long k) {
    if (write != Write::Continue) {
      const char* ahead = reinterpret_cast<const char*>(b + k * kPanel) + kAheadBytes;
      for (size_t line = 0; line < kPanel * sizeof(Element); line += 64) __builtin_prefetch(ahead + line);
    }
    decltype(load(b)) weights[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; v++) weights[v] = load(b + k * kPanel + v * kLanes);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; r++) {
      const auto value = broadcast(a[r * rowStride + k * stepStride]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; v++) sum[r][v] = fma(value, weights[v], sum[r][v]);
    }
  };
#if defined(__wasm_simd128__)
  // Two steps a round, with an exit between them: V8 then still adds up one step's products before it computes the
  // next's.
  for (long k = 0; k < steps; k++) {
    step(k);
    if (++k == steps) break;
    step(k);
  }
#else
  for (long k = 0; k < steps; k++) step(k);
#endif

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

template <class Element>
using Tile = void (*)(float*, long, int, const Factor<Element>*, long, long, const Element*, long, Write);

template <class Element, int... kRows>
constexpr Tile<Element> tileFor(int rows, std::integer_sequence<int, kRows...>) {
  constexpr Tile<Element> tiles[] = {tile<kRows + 1, Element>...};
  return tiles[rows - 1];
}

/// The tile for 1..kTileRows rows.
template <class Element>
inline Tile<Element> tileOf(int rows) {
  return tileFor<Element>(rows, std::make_integer_sequence<int, kTileRows>{});
}

/// Tiles of rows that a task takes: as many as `most`, fewer where the threads would then finish further apart.
inline long tilesPerBlock(long rows, long most, long threads) {
  const long tiles = (rows + kTileRows - 1) / kTileRows;
  long best = 1, shortest = tiles + 1;
  for (long each = most; each >= std::min<long>(most, 4); each--) {
    const long rounds = ((tiles + each - 1) / each + threads - 1) / threads;
    const long last = tiles - (rounds - 1) * threads * each;  // in the last round, shared out in whole blocks
    const long longest = (rounds - 1) * each + std::min(each, last);
    if (longest < shortest) best = each, shortest = longest;
  }
  while (best > 1 && (tiles + best - 1) / best < 2 * threads) best--;
  return best;
}

/// Tiles of two rows widen a panel once for a block of rows: in every tile it would cost a tenth to a half of the time.
constexpr bool kWidensFirst = kTileRows < 6;
constexpr long kMostTiles = kWidensFirst ? 32 : 8;  // of a block of rows

inline const float* widened(const float* panel, long) { return panel; }
/// Valid until this thread widens the next.
inline const float* widened(const Bfloat16* panel, long length) {
  static thread_local Scratch scratch;
  float* to = scratch.floats(length);
  for (long i = 0; i < length; i += kLanes) store(to + i, load(panel + i));
  return to;
}

/// One panel of `out`, for all rows of a block.
template <class Element>
inline void linearPanel(float* out, const Factor<Element>* x, const Element* panel, long rows, long inputs,
                        long outputs, int width, Write write) {
  for (long r = 0; r < rows; r += kTileRows) {
    const int count = static_cast<int>(std::min<long>(kTileRows, rows - r));
    tileOf<Element>(count)(out + r * outputs, outputs, width, x + r * inputs, inputs, 1, panel, inputs, write);
  }
}

template <class Element>
inline void linear(Pool& pool, float* out, const Factor<Element>* x, const Element* packed, long rows, long inputs,
                   long outputs, bool accumulate) {
  if (rows == 0 || inputs == 0) return;
  const Write write = accumulate ? Write::AddSum : Write::Overwrite;
  const long panels = panelsOf(outputs);
  // Rows whose inputs fit the second-level cache together; fewer when there are more threads than blocks.
  const bool small = rows * inputs * outputs < 32768;
  const long mostTiles = std::max<long>(1, std::min<long>(kMostTiles, 65536 / inputs / kTileRows));
  const long blockRows = kTileRows * (small ? mostTiles : tilesPerBlock(rows, mostTiles, pool.threads()));
  const long blocks = (rows + blockRows - 1) / blockRows;
  long groups = 1;
  while (!small && groups < panels && blocks * groups < 2 * pool.threads()) groups++;
  const long panelsPerGroup = (panels + groups - 1) / groups;
  const auto body = [&](long task) {
    const long firstRow = task / groups * blockRows;
    const long lastRow = std::min(rows, firstRow + blockRows);
    const long firstPanel = task % groups * panelsPerGroup;
    const long lastPanel = std::min(panels, firstPanel + panelsPerGroup);
    for (long panel = firstPanel; panel < lastPanel; panel++) {
      const Element* weights = packed + panel * kPanel * inputs;
      const int width = static_cast<int>(std::min<long>(kPanel, outputs - panel * kPanel));
      float* to = out + firstRow * outputs + panel * kPanel;
      const Factor<Element>* from = x + firstRow * inputs;
      if constexpr (kWidensFirst)
        if (lastRow - firstRow > kTileRows) {
          linearPanel(to, from, widened(weights, kPanel * inputs), lastRow - firstRow, inputs, outputs, width, write);
          continue;
        }
      linearPanel(to, from, weights, lastRow - firstRow, inputs, outputs, width, write);
    }
  };
  if (small)
    for (long task = 0; task < blocks * groups; task++) body(task);
  else
    pool.run(blocks * groups, body);
}

template <class Element>
inline void weightGradient(Pool& pool, float* dWeight, const Factor<Element>* x, const Element* dOut, long rows,
                           long inputs, long outputs) {
  // A block of x, and what its task adds to, stay in the second-level cache.
  constexpr long kBlockRows = 256, kBlockInputs = 512, kBlockPanels = 4;
  const long panels = panelsOf(outputs);
  const long tiles = (inputs + kTileRows - 1) / kTileRows;
  // A task is a range of inputs times a range of panels: as long ones as let all threads finish at the same time,
  // nearly.
  long tilesPerRange = 1, panelsPerGroup = 1, soonest = 2 * tiles * panels + 2;
  const auto parts = [](long whole, long each) { return (whole + each - 1) / each; };
  for (long ranges = std::max(1L, parts(inputs, kBlockInputs)), tried = 0; ranges <= tiles && tried < 8;
       ranges++, tried++)
    for (long each = std::min(panels, kBlockPanels); each >= 1; each--) {
      const long rounds = parts(parts(tiles, parts(tiles, ranges)) * parts(panels, each), pool.threads());
      const long end = rounds * parts(tiles, ranges) * each;
      if (end * 33 < soonest * 32) tilesPerRange = parts(tiles, ranges), panelsPerGroup = each, soonest = end;
    }
  const long ranges = parts(tiles, tilesPerRange), groups = parts(panels, panelsPerGroup);
  pool.run(ranges * groups, [&](long task) {
    static thread_local Scratch scratch;
    Element* block = scratch.room<Element>(kBlockRows * kPanel);
    const long firstInput = task % ranges * tilesPerRange * kTileRows;
    const long lastInput = std::min(inputs, firstInput + tilesPerRange * kTileRows);
    const long firstPanel = task / ranges * panelsPerGroup, lastPanel = std::min(panels, firstPanel + panelsPerGroup);
    for (long first = 0; first < rows; first += kBlockRows)
      for (long panel = firstPanel; panel < lastPanel; panel++) {
        const long count = std::min(kBlockRows, rows - first);
        const int width = static_cast<int>(std::min<long>(kPanel, outputs - panel * kPanel));
        const Element* from = dOut + first * outputs + panel * kPanel;
        for (long r = 0; r < count; r++)
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; v++) {
            const int rest = width - v * kLanes;
            store(block + r * kPanel + v * kLanes,
                  rest > 0 ? loadUpTo(from + r * outputs + v * kLanes, rest) : decltype(load(from)){});
          }
        // What comes next lies in rows far apart, where no processor looks ahead: it is called for meanwhile.
        const bool across = panel + 1 < lastPanel;
        const Element* next = from + (across ? kPanel : count * outputs - (panel - firstPanel) * kPanel);
        long ahead = 0, aheadRows = across ? count : std::min(kBlockRows, rows - first - count);
        const long aheadEach = (aheadRows + tilesPerRange - 1) / tilesPerRange;
        for (long i = firstInput; i < lastInput; i += kTileRows) {
          for (const long last = std::min(aheadRows, ahead + aheadEach); ahead < last; ahead++)
            for (int v = 0; v < kVectors; v++) __builtin_prefetch(next + ahead * outputs + v * kLanes, 0, 2);
          const int height = static_cast<int>(std::min<long>(kTileRows, lastInput - i));
          tileOf<Element>(height)(dWeight + i * outputs + panel * kPanel, outputs, width, x + first * inputs + i, 1,
                                  inputs, block, count, Write::Continue);
        }
      }
  });
}

inline void linearWeightGradient(Pool& pool, float* dWeight, const float* x, const float* dOut, long rows, long inputs,
                                 long outputs) {
  weightGradient(pool, dWeight, x, dOut, rows, inputs, outputs);
}

}  // namespace DRMAS_ISA
}  // namespace drmas
