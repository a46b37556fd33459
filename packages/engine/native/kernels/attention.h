// Causal attention over packed sequences, with grouped heads.
//
// For a query at position t, with n = t + 1 keys (of a window of w: the last w of them, the others have e = 0):
//   score[j] = scale · (Σ over d = 0..headDim-1 of q[d] k[j][d])       one lane a key, d in order
//   e[j] = exp(score[j] − max), sum in 16 lanes over blocks of 16 keys in order, then the lane tree
//   out[d] = (Σ over j = 0..n-1 of e[j] v[j][d]) / sum                 one lane a column, j in order
// Blocks of keys start at absolute positions, and which queries are handled together changes no sum, so training,
// prompts and decoding (cache.h) give the same bits. Scores exist for a block of queries at a time.
//
// All five products are tiles of linear.h: one operand is read as it lies, the other from panels that are made once
// for a sequence's head. What a tile computes for keys after its queries is set to 0 before it is summed.
#pragma once
#include <algorithm>
#include <limits>

#include "products/linear.h"
#include "../simd/simd.h"
#include "../types.h"

namespace drmas {
namespace DRMAS_ISA {

inline long blocksOf(long positions) { return (positions + kLanes - 1) / kLanes; }

/// Calls full(j, r) or partial(j, r, seen) for every block of 16 keys before `end` and every row r of a tile, which
/// sees `first + r` keys in all: every one of the block, or the first `seen` of it, 0 to 16.
template <class Full, class Partial>
inline void forKeyBlocks(long end, long first, const Full& full, const Partial& partial) {
  long j = 0;
  for (; j + kLanes <= std::min(first, end); j += kLanes)
    for (int r = 0; r < kTileRows; r++) full(j, r);
  for (; j < end; j += kLanes)
    for (int r = 0; r < kTileRows; r++)
      partial(j, r, static_cast<int>(std::min<long>(kLanes, std::max<long>(0, first + r - j))));
}

/// The first `count` scores are of keys before a query's window: their e is 0.
inline void hideScores(float* row, long count) {
  std::fill_n(row, count, -std::numeric_limits<float>::infinity());
}

/// The softmax of `count` products, which become e: returns the largest score and the sum of e.
struct Softmax {
  float largest, total;
};
inline Softmax softmaxScores(float* row, long count, float scale) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  const F16 factor = broadcast(scale);
  F16 top = broadcast(kLowest);
  forVectors(
      count,
      [&](long j) {
        const F16 s = load(row + j) * factor;
        store(row + j, s);
        top = max(top, s);
      },
      [&](long j, int rest) {
        const F16 s = load(row + j) * factor;
        store(row + j, s);
        top = max(top, keepLanes(s, rest, kLowest));
      });
  const float largest = maxLane(top);
  const F16 shift = broadcast(largest);
  F16 sum = zero();
  forVectors(
      count,
      [&](long j) {
        const F16 e = exp(load(row + j) - shift);
        store(row + j, e);
        sum = sum + e;
      },
      [&](long j, int rest) {
        const F16 e = keepLanes(exp(load(row + j) - shift), rest, 0.f);
        store(row + j, e);
        sum = sum + e;
      });
  return {largest, sumLanes(sum)};
}

/// The softmax of the kTileRows rows of a tile, which are `pitch` floats apart. Row r sees `first + r` keys; the others
/// up to `end` become 0. All rows go through a block of keys together: their sums are independent, which hides the
/// latency of each.
inline void softmaxTile(Softmax* result, float* rows, long pitch, long first, long end, float scale) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  const F16 factor = broadcast(scale);
  F16 folded[kTileRows];
  const auto scaled = [&](long j, int r) {
    float* at = rows + r * pitch + j;
    const F16 s = load(at) * factor;
    store(at, s);
    return s;
  };
  const auto raised = [&](long j, int r) { return exp(load(rows + r * pitch + j) - broadcast(result[r].largest)); };
  const auto add = [&](long j, int r, F16 e) {
    store(rows + r * pitch + j, e);
    folded[r] = folded[r] + e;
  };
  for (int r = 0; r < kTileRows; r++) folded[r] = broadcast(kLowest);
  forKeyBlocks(
      end, first, [&](long j, int r) { folded[r] = max(folded[r], scaled(j, r)); },
      [&](long j, int r, int seen) { folded[r] = max(folded[r], keepLanes(scaled(j, r), seen, kLowest)); });
  for (int r = 0; r < kTileRows; r++) {
    result[r].largest = maxLane(folded[r]);
    folded[r] = zero();
  }
  forKeyBlocks(
      end, first, [&](long j, int r) { add(j, r, raised(j, r)); },
      [&](long j, int r, int seen) { add(j, r, keepLanes(raised(j, r), seen, 0.f)); });
  for (int r = 0; r < kTileRows; r++) result[r].total = sumLanes(folded[r]);
}

/// Panels of kPanel columns, [panel][row][kPanel], of a matrix whose rows lie `stride` apart; what is missing is 0.
inline void packRows(float* panels, const float* from, long stride, long rows, long columns) {
  for (long first = 0; first < columns; first += kPanel, panels += rows * kPanel)
    for (int v = 0; v < kVectors; v++) {
      const int n = static_cast<int>(std::min<long>(kLanes, columns - first - v * kLanes));
      const float* source = from + first + v * kLanes;
      float* to = panels + v * kLanes;
      if (n >= kLanes)
        for (long r = 0; r < rows; r++) store(to + r * kPanel, load(source + r * stride));
      else
        for (long r = 0; r < rows; r++) store(to + r * kPanel, n > 0 ? loadPartial(source + r * stride, n) : zero());
    }
}

/// Panels of the transpose of such a matrix: [panel][column][kPanel rows].
inline void packColumns(float* panels, const float* from, long stride, long rows, long columns) {
  F16 square[kLanes];
  for (long first = 0; first < rows; first += kPanel, panels += columns * kPanel)
    for (int v = 0; v < kVectors; v++) {
      const long height = rows - first - v * kLanes;
      for (long c = 0; c < columns; c += kLanes) {
        const int n = static_cast<int>(std::min<long>(kLanes, columns - c));
        for (int r = 0; r < kLanes; r++)
          square[r] = r < height ? loadUpTo(from + (first + v * kLanes + r) * stride + c, n) : zero();
        transpose(square);
        for (int i = 0; i < n; i++) store(panels + (c + i) * kPanel + v * kLanes, square[i]);
      }
    }
}

/// out [rows, columns] = the sum over k of a's row at step k times row k of the panels, which are of panelSize floats
/// each; a's rows, or its steps, lie `stride` apart.
template <Steps kSteps>
inline void panelProduct(float* out, long outStride, int rows, long columns, const float* a, long stride,
                         const float* panels, long panelSize, long steps, Write write) {
  for (long first = 0; first < columns; first += kPanel, panels += panelSize)
    tileOf<kSteps, float>(rows)(out + first, outStride, static_cast<int>(std::min<long>(kPanel, columns - first)), a,
                                stride, panels, steps, write);
}

/// Room for the scores of a query of a sequence: whole panels and a cache line more, so that rows do not lie a power
/// of two apart, where they would compete for the same places of the cache.
inline long scorePitch(long length) { return panelsOf(length) * kPanel + kLanes; }

inline void attention(Pool& pool, float* out, float* logSumExp, const float* qkv, const int32_t* starts, long sequences,
                      Heads h) {
  const float scale = 1.f / std::sqrt(static_cast<float>(h.headDim));
  const long stride = h.stride(), outStride = static_cast<long>(h.heads) * h.headDim;
  pool.run(sequences * h.kvHeads, [&](long task) {
    static thread_local Scratch keyScratch, valueScratch, scoreScratch;
    const long first = starts[task / h.kvHeads], length = starts[task / h.kvHeads + 1] - first;
    const int kvHead = static_cast<int>(task % h.kvHeads);
    const float* base = qkv + first * stride;
    const float* keys = base + static_cast<long>(h.heads + kvHead) * h.headDim;
    const float* values = keys + static_cast<long>(h.kvHeads) * h.headDim;
    const long pitch = scorePitch(length);
    float* keyColumns = keyScratch.floats(packedSize(h.headDim, length));
    float* valueRows = valueScratch.floats(packedSize(length, h.headDim));
    float* scores = scoreScratch.floats(static_cast<size_t>(pitch) * kTileRows);
    packColumns(keyColumns, keys, stride, length, h.headDim);
    packRows(valueRows, values, stride, length, h.headDim);
    for (int head = kvHead * h.group(); head < (kvHead + 1) * h.group(); head++)
      for (long t = 0; t < length; t += kTileRows) {
        const int count = static_cast<int>(std::min<long>(kTileRows, length - t));
        const long begin = h.firstSeen(t) / kPanel * kPanel, end = t + count;
        const float* queries = base + t * stride + static_cast<long>(head) * h.headDim;
        float* to = out + (first + t) * outStride + static_cast<long>(head) * h.headDim;
        panelProduct<Steps::AlongRows>(scores + begin, pitch, count, end - begin, queries, stride,
                                       keyColumns + begin * h.headDim, h.headDim * kPanel, h.headDim,
                                       Write::Overwrite);
        for (int r = 0; r < count; r++) hideScores(scores + r * pitch + begin, h.firstSeen(t + r) - begin);
        Softmax softmax[kTileRows];
        softmaxTile(softmax, scores + begin, pitch, t + 1 - begin, end - begin, scale);
        for (int r = 0; r < count; r++)
          logSumExp[(first + t + r) * h.heads + head] = softmax[r].largest + std::log(softmax[r].total);
        panelProduct<Steps::AlongRows>(to, outStride, count, h.headDim, scores + begin, pitch,
                                       valueRows + begin * kPanel, length * kPanel, end - begin, Write::Overwrite);
        for (int r = 0; r < count; r++) {
          float* row = to + r * outStride;
          const F16 factor = broadcast(1.f / softmax[r].total);
          forVectors(
              h.headDim, [&](long c) { store(row + c, load(row + c) * factor); },
              [&](long c, int rest) { storePartial(row + c, loadPartial(row + c, rest) * factor, rest); });
        }
      }
  });
}

}  // namespace DRMAS_ISA
}  // namespace drmas
