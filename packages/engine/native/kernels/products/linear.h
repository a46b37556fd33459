// Linear layers. out[r][n] = sum over k of x[r][k] W[k][n].
//
// Order of accumulation: tile.h's, over k = 0..inputs-1.
//
// Blocking: W is packed once per optimiser step into panels of kPanel columns, so that the innermost loop reads it with
// unit stride; a task is a block of rows times a range of panels. If there are many inputs, all panels take a part of
// them at a time: the rows of a block and a panel stay in the second-level cache. AMD's cores are a little faster when
// blocks are twice as high and take all inputs, and are slower with prefetches of results.
//
// W may be of floats or of Bfloat16, which become floats as they are loaded: exactly, and nothing else differs, so
// that both give the same bits.
#pragma once
#include <algorithm>

#include "tile.h"

namespace drmas {
namespace DRMAS_ISA {

inline long panelsOf(long outputs) { return (outputs + kPanel - 1) / kPanel; }

inline size_t packedSize(long inputs, long outputs) { return static_cast<size_t>(panelsOf(outputs)) * kPanel * inputs; }

template <class Element>
inline void pack(Pool& pool, Element* packed, const Element* weight, long inputs, long outputs, bool transpose) {
  pool.run(panelsOf(outputs), [&](long panel) {
    Element* to = packed + panel * kPanel * inputs;
    const long first = panel * kPanel;
    const int width = static_cast<int>(std::min<long>(kPanel, outputs - first));
    if constexpr (kTransposesInRegisters && sizeof(Element) == sizeof(float))
      if (transpose) {
        for (long k = 0; k < inputs; k += kLanes)
          for (int n = 0; n < kPanel; n += kLanes) {
            F16 lines[kLanes];
            loadColumns(lines, weight + (first + n) * inputs + k, inputs, width - n, inputs - k);
            for (long i = k; i < std::min(inputs, k + kLanes); i++) store(to + i * kPanel + n, lines[i - k]);
          }
        return;
      }
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
  while (threads > 1 && best > 1 && (tiles + best - 1) / best < 2 * threads) best--;
  return best;
}

/// Narrow tiles widen a panel once for a block of rows: in every tile it would cost a tenth to a half of the time. A
/// block of few tiles widens in registers: its weights come from memory, where they are half as long.
constexpr bool kWidensFirst = kTileRows <= 6;
/// More rows than these meet a widened panel.
constexpr long kWidenedRows = kTileRows < 6 ? kTileRows : 4 * kTileRows;

/// What a block of rows is at most: its tiles, and the inputs that these are multiplied with at a time; and whether the
/// results of the next tile are called for.
struct Blocks {
  long mostTiles, mostInputs;
  bool callsAhead;
};

inline Blocks blocksFor(Cores cores) {
  const bool amd = cores != Cores::Any;
  if (kTileRows < 6) return {32, 512, !amd};
  // In higher blocks the results leave the caches before the next panel's turn.
  return amd ? Blocks{96 / kTileRows, 1 << 20, false} : Blocks{48 / kTileRows, 512, true};
}

inline const float* widened(const float* panel, long) { return panel; }
/// Valid until this thread widens the next.
inline const float* widened(const Bfloat16* panel, long length) {
  static thread_local Scratch scratch;
  float* to = scratch.floats(length);
  for (long i = 0; i < length; i += kLanes) store(to + i, load(panel + i));
  return to;
}

/// One panel of `out`, for all rows of a block: the products of `count` inputs.
template <class Element>
inline void linearPanel(float* out, long outStride, int width, const Factor<Element>* x, long inputs,
                        const Element* panel, long rows, long count, Write write, bool callsAhead) {
  for (long r = 0; r < rows; r += kTileRows) {
    if (callsAhead && r + kTileRows < rows) callForTile(out + (r + kTileRows) * outStride, outStride);
    const auto tile = tileOf<Steps::AlongRows, Element>(static_cast<int>(std::min<long>(kTileRows, rows - r)));
    tile(out + r * outStride, outStride, width, x + r * inputs, inputs, panel, count, write);
  }
}

/// Adds finished sums, `width` of each row, to a block of out.
inline void addBlock(float* out, long outStride, const float* sums, long rows, long width) {
  for (long r = 0; r < rows; r++)
    for (long n = 0; n < width; n++) out[r * outStride + n] += sums[r * width + n];
}

/// `linear` over any panels. panels(column, first, count, rows, multiply) calls multiply with the weights of `count`
/// inputs from `first` on for the kPanel columns from `column` on, which will meet so many rows. A block multiplies at
/// most `mostInputs` at a time: as many of them as of others, whole multiples of `unit`.
template <class Left, class Panels>
inline void linearOver(Pool& pool, float* out, const Left* x, long rows, long inputs, long outputs, bool accumulate,
                       long mostInputs, long unit, const Panels& panels) {
  const long panelCount = panelsOf(outputs);
  // The inputs that a block multiplies at a time fit the second-level cache for all of its rows. A block has fewer rows
  // if there are more threads than blocks.
  const bool small = rows * inputs * outputs < 32768;
  const Blocks limits = blocksFor(pool.cores());
  const long parts = (inputs + mostInputs - 1) / mostInputs;
  const long each = ((inputs + parts - 1) / parts + unit - 1) / unit * unit;
  // Few rows stay together if there are enough panels to share out: each block reads all weights.
  const bool together = small || (rows <= kTileRows * limits.mostTiles && panelCount >= 4 * pool.threads());
  const long blockTiles = together ? limits.mostTiles : tilesPerBlock(rows, limits.mostTiles, pool.threads());
  const long blockRows = kTileRows * blockTiles;
  const long blocks = (rows + blockRows - 1) / blockRows;
  long groups = 1;
  while (!small && pool.threads() > 1 && groups < panelCount && blocks * groups < 2 * pool.threads()) groups++;
  const long panelsPerGroup = (panelCount + groups - 1) / groups;
  groups = (panelCount + panelsPerGroup - 1) / panelsPerGroup;  // fewer, where panels do not share out evenly
  const auto body = [&](long task) {
    const long firstRow = task / groups * blockRows, height = std::min(rows - firstRow, blockRows);
    const long firstPanel = task % groups * panelsPerGroup;
    const long across = std::min((firstPanel + panelsPerGroup) * kPanel, outputs) - firstPanel * kPanel;
    float* to = out + firstRow * outputs + firstPanel * kPanel;
    // A sum in parts that is to be added once, when it is finished, is gathered elsewhere.
    static thread_local Scratch scratch;
    const bool apart = accumulate && each < inputs;
    float* sums = apart ? scratch.floats(height * across) : to;
    const long stride = apart ? across : outputs;
    for (long first = 0; first < inputs; first += each) {
      const long count = std::min(each, inputs - first);
      const Write write = first > 0 ? Write::Continue : accumulate && !apart ? Write::AddSum : Write::Overwrite;
      for (long n = 0; n < across; n += kPanel) {
        const Left* from = x + firstRow * inputs + first;
        const int width = static_cast<int>(std::min<long>(kPanel, across - n));
        panels(firstPanel * kPanel + n, first, count, height, [&](const auto* weights) {
          linearPanel(sums + n, stride, width, from, inputs, weights, height, count, write, limits.callsAhead);
        });
      }
    }
    if (apart) addBlock(to, outputs, sums, height, across);
  };
  if (small)
    for (long task = 0; task < blocks * groups; task++) body(task);
  else
    pool.run(blocks * groups, body);
}

template <class Element>
inline void linear(Pool& pool, float* out, const Factor<Element>* x, const Element* packed, long rows, long inputs,
                   long outputs, bool accumulate) {
  if (rows == 0 || inputs == 0) return;
  const long mostInputs = rows <= kTileRows ? inputs : blocksFor(pool.cores()).mostInputs;
  linearOver(pool, out, x, rows, inputs, outputs, accumulate, mostInputs, 1,
             [&](long column, long first, long count, long height, const auto& multiply) {
               const Element* panel = packed + column * inputs + first * kPanel;
               if constexpr (kWidensFirst)
                 if (height > kWidenedRows) return multiply(widened(panel, kPanel * count));
               multiply(panel);
             });
}

}  // namespace DRMAS_ISA
}  // namespace drmas
