// The gradient of causal attention (attention.h). Scores are computed again, for a block of queries at a time.
//
// With p[j] = exp(score[j] − logSumExp) and D = Σ dOut · out, per query:
//   ds[j] = p[j] (dOut · v[j] − D) scale;  dq = Σ_j ds[j] k[j];
//   dk[j] = Σ ds[j] q;  dv[j] = Σ p[j] dOut                              over heads, then queries, in order
#pragma once
#include "attention.h"

namespace drmas {
namespace DRMAS_ISA {

/// The backward pass through one head of keys and values of one sequence: what its blocks of queries share.
struct BackwardHead {
  static constexpr long kBlock = 48;  // queries whose p and ds exist at a time: a block reads its keys' gradients once
  static_assert(kBlock % kTileRows == 0, "a block is whole tiles");

  Heads shape;
  int headDim;
  float scale;
  long length, stride, outStride, heads;
  long pitch;                                             // of a row of p and ds
  const float *keyColumns, *valueColumns, *keyRows;       // panels
  float *queryRows, *upstreamRows;                        // panels of the block
  float *p, *ds;                                          // [kBlock][pitch]
  float *dKeys, *dValues;                                 // [length][headDim]

  /// Queries begin..begin + count - 1 of one head; the pointers are to the first one's row.
  struct Block {
    long begin, count;
    const float *queries, *upstream, *result, *logSumExp;
    float* dQueries;
  };

  void add(const Block& b) const {
    // Keys before `from` are outside of the windows of all queries; `firstTile` is a whole number of tiles.
    const long from = shape.firstSeen(b.begin) / kPanel * kPanel, firstTile = from / kTileRows * kTileRows;
    packRows(queryRows, b.queries, stride, b.count, headDim);
    packRows(upstreamRows, b.upstream, outStride, b.count, headDim);
    for (long q = 0; q < b.count; q += kTileRows) {
      const int count = static_cast<int>(std::min<long>(kTileRows, b.count - q));
      scores(b, q, count, from);
      for (int r = 0; r < count; r++) {
        const long hidden = shape.firstSeen(b.begin + q + r) - firstTile;
        std::fill_n(p + (q + r) * pitch + firstTile, hidden, 0.f);
        std::fill_n(ds + (q + r) * pitch + firstTile, hidden, 0.f);
      }
      panelProduct<Steps::AlongRows>(b.dQueries + q * stride, stride, count, headDim, ds + q * pitch + from, pitch,
                                     keyRows + from * kPanel, length * kPanel, b.begin + q + count - from,
                                     Write::Overwrite);
    }
    for (long j = firstTile; j < b.begin + b.count; j += kTileRows) {
      addToKeys(b, dKeys, j, ds, queryRows);
      addToKeys(b, dValues, j, p, upstreamRows);
    }
  }

 private:
  /// p and ds of a tile of queries and the keys from `from` on, 0 for the keys after a query.
  void scores(const Block& b, long q, int count, long from) const {
    const long end = b.begin + q + count, panelSize = static_cast<long>(headDim) * kPanel;
    const float *upstream = b.upstream + q * outStride, *result = b.result + q * outStride;
    panelProduct<Steps::AlongRows>(p + q * pitch + from, pitch, count, end - from, b.queries + q * stride, stride,
                                   keyColumns + from * headDim, panelSize, headDim, Write::Overwrite);
    panelProduct<Steps::AlongRows>(ds + q * pitch + from, pitch, count, end - from, upstream, outStride,
                                   valueColumns + from * headDim, panelSize, headDim, Write::Overwrite);
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
      float *pAt = p + (q + r) * pitch + from + j, *dsAt = ds + (q + r) * pitch + from + j;
      const F16 probability = keep(exp(load(pAt) * factor - lse[r]));
      store(pAt, probability);
      store(dsAt, keep(probability * (load(dsAt) - d[r]) * factor));
    };
    forKeyBlocks(
        end - from, b.begin + q + 1 - from, [&](long j, int r) { both(j, r, [](F16 a) { return a; }); },
        [&](long j, int r, int seen) { both(j, r, [=](F16 a) { return keepLanes(a, seen, 0.f); }); });
  }

  /// to[j] += Σ factors[query][j] rows[query] for a tile of keys from j on, over the queries that see one of them.
  void addToKeys(const Block& b, float* to, long j, const float* factors, const float* rows) const {
    const int count = static_cast<int>(std::min<long>(kTileRows, b.begin + b.count - j));
    const long q = std::max(0L, j - b.begin);
    panelProduct<Steps::RowsAlong>(to + j * headDim, headDim, count, headDim, factors + q * pitch + j, pitch,
                                   rows + q * kPanel, b.count * kPanel, b.count - q, Write::Continue);
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
    const long blockRows = static_cast<long>(packedSize(kBlock, h.headDim)), pitch = scorePitch(length);
    float* keyColumns = panelScratch.floats(2 * columns + packedSize(length, h.headDim));
    float *valueColumns = keyColumns + columns, *keyRows = valueColumns + columns;
    float* queryRows = blockScratch.floats(static_cast<size_t>(2 * blockRows));
    float* p = scoreScratch.floats(static_cast<size_t>(2 * kBlock * pitch));
    float* dKeys = gradientScratch.floats(static_cast<size_t>(2 * gradients));
    packColumns(keyColumns, base + keyOffset, stride, length, h.headDim);
    packColumns(valueColumns, base + valueOffset, stride, length, h.headDim);
    packRows(keyRows, base + keyOffset, stride, length, h.headDim);
    std::fill_n(dKeys, 2 * gradients, 0.f);
    const float scale = 1.f / std::sqrt(static_cast<float>(h.headDim));
    const BackwardHead backward{h, h.headDim, scale, length, stride, outStride, h.heads, pitch,
                                keyColumns, valueColumns, keyRows, queryRows, queryRows + blockRows,
                                p, p + kBlock * pitch, dKeys, dKeys + gradients};
    for (long head = static_cast<long>(kvHead) * h.group(); head < (kvHead + 1L) * h.group(); head++)
      for (long begin = 0; begin < length; begin += kBlock) {
        const long query = begin * stride + head * h.headDim;
        const long row = first + begin, result = row * outStride + head * h.headDim;
        backward.add({begin, std::min(kBlock, length - begin), base + query, dOut + result, out + result,
                 logSumExp + row * h.heads + head, dBase + query});
      }
    for (long j = 0; j < length; j++) {
      std::copy_n(dKeys + j * h.headDim, h.headDim, dBase + j * stride + keyOffset);
      std::copy_n(backward.dValues + j * h.headDim, h.headDim, dBase + j * stride + valueOffset);
    }
  });
}

}  // namespace DRMAS_ISA
}  // namespace drmas
