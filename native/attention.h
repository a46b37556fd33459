// Causal attention over packed sequences, with grouped heads.
//
// For a query at position t, with n = t + 1 keys:
//   score[j] = scale · (Σ over d = 0..headDim-1 of q[d] k[j][d])       one lane a key, d in order
//   e[j] = exp(score[j] − max), sum in 16 lanes over blocks of 16 keys in order, then the lane tree
//   out[d] = (Σ over j = 0..n-1 of e[j] v[j][d]) / sum                 one lane a column, j in order
// Backward, with p[j] = exp(score[j] − logSumExp) and D = Σ dOut · out:
//   ds[j] = p[j] (dOut · v[j] − D) scale;  dq = Σ_j ds[j] k[j];
//   dk[j] = Σ ds[j] q;  dv[j] = Σ p[j] dOut                              over queries in order
// Blocks of keys start at absolute positions, and which queries are handled together changes no sum, so training, prompts
// and decoding (cache.h) give the same bits. Scores exist for a block of queries at a time.
//
// All five products are tiles of linear.h: one operand is read as it lies, the other from panels that are made once for a
// sequence's head. What a tile computes for keys after its queries is set to 0 before it is summed.
#pragma once
#include <algorithm>
#include <limits>

#include "linear.h"
#include "simd.h"
#include "table.h"

namespace drmas {
namespace DRMAS_ISA {

inline long blocksOf(long positions) { return (positions + kLanes - 1) / kLanes; }

/// Calls full(j, r) or partial(j, r, seen) for every block of 16 keys before `end` and every row r of a tile, which sees
/// `first + r` keys in all: every one of the block, or the first `seen` of it, 0 to 16.
template <class Full, class Partial>
inline void forKeyBlocks(long end, long first, const Full& full, const Partial& partial) {
  long j = 0;
  for (; j + kLanes <= std::min(first, end); j += kLanes)
    for (int r = 0; r < kTileRows; r++) full(j, r);
  for (; j < end; j += kLanes)
    for (int r = 0; r < kTileRows; r++)
      partial(j, r, static_cast<int>(std::min<long>(kLanes, std::max<long>(0, first + r - j))));
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

/// The same for the kTileRows rows of a tile, `room` apart, of which row r sees `first + r` keys; the others up to `end`
/// become 0. All rows go through a block of keys together: their sums are independent, which hides how long each takes.
inline void softmaxTile(Softmax* result, float* rows, long room, long first, long end, float scale) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  const F16 factor = broadcast(scale);
  F16 folded[kTileRows];
  const auto scaled = [&](long j, int r) {
    float* at = rows + r * room + j;
    const F16 s = load(at) * factor;
    store(at, s);
    return s;
  };
  const auto raised = [&](long j, int r) { return exp(load(rows + r * room + j) - broadcast(result[r].largest)); };
  const auto add = [&](long j, int r, F16 e) {
    store(rows + r * room + j, e);
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

/// The same of the transpose: [panel][column][kPanel rows].
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

/// out [rows, columns] = the sum over k of a[r * rowStride + k * stepStride] times row k of the panels, which are of
/// panelSize floats each.
inline void panelProduct(float* out, long outStride, int rows, long columns, const float* a, long rowStride,
                         long stepStride, const float* panels, long panelSize, long steps, Write write) {
  for (long first = 0; first < columns; first += kPanel, panels += panelSize)
    tileOf<float>(rows)(out + first, outStride, static_cast<int>(std::min<long>(kPanel, columns - first)), a, rowStride,
                        stepStride, panels, steps, write);
}

/// Room for the scores of a query of a sequence: whole panels and a cache line more, so that rows do not lie a power of two
/// apart, where they would compete for the same places of the cache.
inline long scoreRoom(long length) { return panelsOf(length) * kPanel + kLanes; }

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
    const long room = scoreRoom(length);
    float* keyColumns = keyScratch.floats(packedSize(h.headDim, length));
    float* valueRows = valueScratch.floats(packedSize(length, h.headDim));
    float* scores = scoreScratch.floats(static_cast<size_t>(room) * kTileRows);
    packColumns(keyColumns, keys, stride, length, h.headDim);
    packRows(valueRows, values, stride, length, h.headDim);
    for (int head = kvHead * h.group(); head < (kvHead + 1) * h.group(); head++)
      for (long t = 0; t < length; t += kTileRows) {
        const int count = static_cast<int>(std::min<long>(kTileRows, length - t));
        const long end = t + count;
        const float* queries = base + t * stride + static_cast<long>(head) * h.headDim;
        float* to = out + (first + t) * outStride + static_cast<long>(head) * h.headDim;
        panelProduct(scores, room, count, end, queries, stride, 1, keyColumns, h.headDim * kPanel, h.headDim,
                     Write::Overwrite);
        Softmax softmax[kTileRows];
        softmaxTile(softmax, scores, room, t + 1, end, scale);
        for (int r = 0; r < count; r++)
          logSumExp[(first + t + r) * h.heads + head] = softmax[r].largest + std::log(softmax[r].total);
        panelProduct(to, outStride, count, h.headDim, scores, room, 1, valueRows, length * kPanel, end, Write::Overwrite);
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

/// The backward pass through one head of keys and values of one sequence: what its blocks of queries share.
struct BackwardHead {
  static constexpr long kBlock = 48;  // queries whose p and ds exist at a time: a block reads its keys' gradients once
  static_assert(kBlock % kTileRows == 0, "a block is whole tiles");

  int headDim;
  float scale;
  long length, stride, outStride, heads;
  long room;                                              // of a row of p and ds
  const float *keyColumns, *valueColumns, *keyRows;       // panels
  float *queryRows, *upstreamRows;                        // panels of the block
  float *p, *ds;                                          // [kBlock][room]
  float *dKeys, *dValues;                                 // [length][headDim]

  /// Queries begin..begin + count - 1 of one head; the pointers are to the first one's row.
  struct Block {
    long begin, count;
    const float *queries, *upstream, *result, *logSumExp;
    float* dQueries;
  };

  void add(const Block& b) const {
    packRows(queryRows, b.queries, stride, b.count, headDim);
    packRows(upstreamRows, b.upstream, outStride, b.count, headDim);
    for (long q = 0; q < b.count; q += kTileRows) {
      const int count = static_cast<int>(std::min<long>(kTileRows, b.count - q));
      scores(b, q, count);
      panelProduct(b.dQueries + q * stride, stride, count, headDim, ds + q * room, room, 1, keyRows, length * kPanel,
                   b.begin + q + count, Write::Overwrite);
    }
    for (long j = 0; j < b.begin + b.count; j += kTileRows) {
      addToKeys(b, dKeys, j, ds, queryRows);
      addToKeys(b, dValues, j, p, upstreamRows);
    }
  }

 private:
  /// p and ds of a tile of queries, 0 for the keys that a query does not see.
  void scores(const Block& b, long q, int count) const {
    const long end = b.begin + q + count, panelSize = static_cast<long>(headDim) * kPanel;
    const float *upstream = b.upstream + q * outStride, *result = b.result + q * outStride;
    panelProduct(p + q * room, room, count, end, b.queries + q * stride, stride, 1, keyColumns, panelSize, headDim,
                 Write::Overwrite);
    panelProduct(ds + q * room, room, count, end, upstream, outStride, 1, valueColumns, panelSize, headDim,
                 Write::Overwrite);
    const F16 factor = broadcast(scale);
    F16 d[kTileRows], lse[kTileRows];
    for (int r = 0; r < kTileRows; r++) {
      const long row = std::min<long>(r, count - 1);  // what a tile's rows after the last query hold is not used
      F16 dot = zero();
      for (int c = 0; c < headDim; c += kLanes)
        dot = fma(loadUpTo(upstream + row * outStride + c, headDim - c),
                  loadUpTo(result + row * outStride + c, headDim - c), dot);
      d[r] = broadcast(sumLanes(dot));
      lse[r] = broadcast(b.logSumExp[(q + row) * heads]);
    }
    const auto both = [&](long j, int r, auto keep) {
      float *pAt = p + (q + r) * room + j, *dsAt = ds + (q + r) * room + j;
      const F16 probability = keep(exp(load(pAt) * factor - lse[r]));
      store(pAt, probability);
      store(dsAt, keep(probability * (load(dsAt) - d[r]) * factor));
    };
    forKeyBlocks(
        end, b.begin + q + 1, [&](long j, int r) { both(j, r, [](F16 a) { return a; }); },
        [&](long j, int r, int seen) { both(j, r, [=](F16 a) { return keepLanes(a, seen, 0.f); }); });
  }

  /// to[j] += Σ factors[query][j] rows[query] for a tile of keys from j on, over the queries that see one of them.
  void addToKeys(const Block& b, float* to, long j, const float* factors, const float* rows) const {
    const int count = static_cast<int>(std::min<long>(kTileRows, b.begin + b.count - j));
    const long q = std::max(0L, j - b.begin);
    panelProduct(to + j * headDim, headDim, count, headDim, factors + q * room + j, 1, room, rows + q * kPanel,
                 b.count * kPanel, b.count - q, Write::Continue);
  }
};

inline void attentionBackward(Pool& pool, float* dQkv, const float* dOut, const float* out, const float* logSumExp,
                              const float* qkv, const int32_t* starts, long sequences, Heads h) {
  constexpr long kBlock = BackwardHead::kBlock;
  const long stride = h.stride(), outStride = static_cast<long>(h.heads) * h.headDim;
  pool.run(sequences * h.kvHeads, [&](long task) {
    static thread_local Scratch panelScratch, blockScratch, scoreScratch, gradientScratch;
    const long first = starts[task / h.kvHeads], length = starts[task / h.kvHeads + 1] - first;
    const int kvHead = static_cast<int>(task % h.kvHeads);
    const long keyOffset = static_cast<long>(h.heads + kvHead) * h.headDim;
    const long valueOffset = keyOffset + static_cast<long>(h.kvHeads) * h.headDim;
    const float* base = qkv + first * stride;
    float* dBase = dQkv + first * stride;

    const long columns = static_cast<long>(packedSize(h.headDim, length)), gradients = length * h.headDim;
    const long blockRows = static_cast<long>(packedSize(kBlock, h.headDim)), room = scoreRoom(length);
    float* keyColumns = panelScratch.floats(2 * columns + packedSize(length, h.headDim));
    float *valueColumns = keyColumns + columns, *keyRows = valueColumns + columns;
    float* queryRows = blockScratch.floats(static_cast<size_t>(2 * blockRows));
    float* p = scoreScratch.floats(static_cast<size_t>(2 * kBlock * room));
    float* dKeys = gradientScratch.floats(static_cast<size_t>(2 * gradients));
    packColumns(keyColumns, base + keyOffset, stride, length, h.headDim);
    packColumns(valueColumns, base + valueOffset, stride, length, h.headDim);
    packRows(keyRows, base + keyOffset, stride, length, h.headDim);
    std::fill_n(dKeys, 2 * gradients, 0.f);
    const BackwardHead own{h.headDim, 1.f / std::sqrt(static_cast<float>(h.headDim)), length, stride, outStride, h.heads,
                           room, keyColumns, valueColumns, keyRows, queryRows, queryRows + blockRows,
                           p, p + kBlock * room, dKeys, dKeys + gradients};
    for (long head = static_cast<long>(kvHead) * h.group(); head < (kvHead + 1L) * h.group(); head++)
      for (long begin = 0; begin < length; begin += kBlock) {
        const long query = begin * stride + head * h.headDim;
        const long row = first + begin, result = row * outStride + head * h.headDim;
        own.add({begin, std::min(kBlock, length - begin), base + query, dOut + result, out + result,
                 logSumExp + row * h.heads + head, dBase + query});
      }
    for (long j = 0; j < length; j++) {
      std::copy_n(dKeys + j * h.headDim, h.headDim, dBase + j * stride + keyOffset);
      std::copy_n(own.dValues + j * h.headDim, h.headDim, dBase + j * stride + valueOffset);
    }
  });
}

}  // namespace DRMAS_ISA
}  // namespace drmas
