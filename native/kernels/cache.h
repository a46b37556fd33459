// Causal attention through a cache of keys and values, for prompts and decoding. Scores, sums and their order are
// as in attention.h, so that both give the same bits.
//
// Keys are held transposed in blocks of 16 positions, [block][headDim][16], so that one vector holds the scores of 16
// keys.
#pragma once
#include <algorithm>
#include <limits>

#include "attention.h"

namespace drmas {
namespace DRMAS_ISA {

constexpr int kQueries = 4;  // handled together, to reuse what is loaded of keys and values

/// products[r][j] = Σ_d x[r][d] · blocks[j][d] for all j below 16 · blockCount. kShared: all rows meet the same blocks,
/// blocks[0]; otherwise row r its own, blocks[r].
template <int kRows, int kBlocks, bool kShared>
inline void dotBlocksTile(float* products, long productStride, const float* const* x, const float* const* blocks,
                          long first, int headDim) {
  F16 sum[kRows][kBlocks];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; r++)
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; b++) sum[r][b] = zero();
  for (int d = 0; d < headDim; d++) {
    F16 keys[kBlocks];
    const auto loadKeys = [&](const float* from) {
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; b++) keys[b] = load(from + ((first + b) * headDim + d) * kLanes);
    };
    if (kShared) loadKeys(blocks[0]);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; r++) {
      if (!kShared) loadKeys(blocks[r]);
      const F16 value = broadcast(x[r][d]);
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; b++) sum[r][b] = fma(value, keys[b], sum[r][b]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; r++)
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; b++) store(products + r * productStride + (first + b) * kLanes, sum[r][b]);
}

template <int kRows, bool kShared, class Ahead>
inline void dotBlocks(float* products, long productStride, const float* const* x, const float* const* blocks,
                      long blockCount, int headDim, const Ahead& ahead) {
  // Enough independent sums to hide the latency of multiply-add.
  constexpr int kTogether = kRows == 1 || (kRows == 2 && kShared) ? 4 : 2;
  long b = 0;
  for (; b + kTogether <= blockCount; b += kTogether) {
    for (int i = 0; i < kTogether; i++) ahead(b + i);
    dotBlocksTile<kRows, kTogether, kShared>(products, productStride, x, blocks, b, headDim);
  }
  for (; b < blockCount; b++) {
    ahead(b);
    dotBlocksTile<kRows, 1, kShared>(products, productStride, x, blocks, b, headDim);
  }
}

/// Columns c to c + 16 kChunks of out[r] = inverse[r] · Σ_j scores[r][j] · values[r][j], j in order: together as far
/// as all rows have keys, then each row's own.
template <int kRows, bool kShared, int kChunks, class Ahead>
inline void weighValues(float* const* out, const float* scores, long scoreStride, const float* inverse,
                        const long* counts, long shortest, const float* const* values, int c, int headDim,
                        const Ahead& ahead) {
  F16 sum[kRows][kChunks];
  const float* from[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; r++) {
    from[r] = values[kShared ? 0 : r] + c;
#pragma GCC unroll 2
    for (int i = 0; i < kChunks; i++) sum[r][i] = zero();
  }
  // Whole vectors, which may hold some of the next keys' values in lanes that are not stored, as far as there are
  // such keys.
  const long rest = shortest * headDim - c - kChunks * kLanes;
  const long together = rest < 0 ? 0 : rest / headDim + 1;
  for (long first = 0; first < together; first += kLanes) {
    if (c == 0) ahead(first / kLanes);
    const long last = std::min(together, first + kLanes);
    for (long j = first; j < last; j++) {
      F16 value[kChunks];
#pragma GCC unroll 4
      for (int r = 0; r < kRows; r++) {
        if (r == 0 || !kShared)
#pragma GCC unroll 2
          for (int i = 0; i < kChunks; i++) value[i] = load(from[r] + j * headDim + i * kLanes);
        const F16 e = broadcast(scores[r * scoreStride + j]);
#pragma GCC unroll 2
        for (int i = 0; i < kChunks; i++) sum[r][i] = fma(e, value[i], sum[r][i]);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; r++)
#pragma GCC unroll 2
    for (int i = 0; i < kChunks; i++) {
      const int width = std::min(kLanes, headDim - c - i * kLanes);
      const float* tail = from[r] + i * kLanes;
      for (long j = together; j < counts[r]; j++)
        sum[r][i] = fma(broadcast(scores[r * scoreStride + j]), loadUpTo(tail + j * headDim, width), sum[r][i]);
      storeUpTo(out[r] + c + i * kLanes, sum[r][i] * broadcast(inverse[r]), width);
    }
}

/// kRows queries with counts[r] keys each, of one head (kShared: all rows have the keys and values of row 0) or of
/// several. The first hidden[r] of the keys are before the query's window. `scores` has room for kRows rows of
/// scoreStride floats. While a block of 16 positions is computed, the same
/// block of the next operand is prefetched: first of the values, then of nextKeys (kRows of them, or null).
template <int kRows, bool kShared>
inline void attendRows(float* const* out, const float* const* q, const long* counts, const long* hidden,
                       const float* const* keyBlocks, const float* const* values, const float* const* nextKeys,
                       int headDim, float scale, float* scores, long scoreStride) {
  long longest = 0, shortest = std::numeric_limits<long>::max();
  for (int r = 0; r < kRows; r++) {
    longest = std::max(longest, counts[r]);
    shortest = std::min(shortest, counts[r]);
  }
  const long blockSize = static_cast<long>(headDim) * kLanes;
  const auto callFor = [&](const float* const* from, long block) {
    for (int r = 0; r < (kShared ? 1 : kRows); r++)
      for (long i = 0; i < blockSize; i += kLanes) __builtin_prefetch(from[r] + block * blockSize + i, 0, 2);
  };
  dotBlocks<kRows, kShared>(scores, scoreStride, q, keyBlocks, blocksOf(longest), headDim,
                            [&](long block) { callFor(values, block); });

  const auto callForKeys = [&](long block) {
    if (nextKeys) callFor(nextKeys, block);
  };
  float inverse[kRows];
  for (int r = 0; r < kRows; r++) {
    float* row = scores + r * scoreStride;
    hideScores(row, hidden[r]);
    inverse[r] = 1.f / softmaxScores(row, counts[r], scale).total;
  }

  for (int c = 0; c < headDim; c += 2 * kLanes) {
    const auto weigh = headDim - c > kLanes ? weighValues<kRows, kShared, 2, decltype(callForKeys)>
                                            : weighValues<kRows, kShared, 1, decltype(callForKeys)>;
    weigh(out, scores, scoreStride, inverse, counts, shortest, values, c, headDim, callForKeys);
  }
}

/// Keys of a slot: [kvHead][block][headDim][16]; values: [kvHead][position][headDim]. Both are padded to whole blocks.
inline size_t cacheSlotSize(long capacity, Heads h) {
  return static_cast<size_t>(blocksOf(capacity)) * kLanes * h.kvHeads * h.headDim;
}

inline void attentionCached(Pool& pool, float* out, float* keys, float* values, const float* qkv, const int32_t* slots,
                            const int32_t* positions, long rows, long capacity, Heads h) {
  const float scale = 1.f / std::sqrt(static_cast<float>(h.headDim));
  const long stride = h.stride(), outStride = static_cast<long>(h.heads) * h.headDim;
  const long slotSize = static_cast<long>(cacheSlotSize(capacity, h));
  const long headSize = slotSize / h.kvHeads;
  constexpr long kRowsTogether = 8;
  const long tasks = (rows + kRowsTogether - 1) / kRowsTogether;
  // Long stretches of rows: a cache line of keys holds 16 positions, and two threads should seldom write the same one.
  const long stretch = std::max(kRowsTogether, rows / (4 * pool.threads()));
  pool.run((rows + stretch - 1) / stretch, [&](long task) {
    const long last = std::min(rows, (task + 1) * stretch);
    for (long r = task * stretch; r < last; r++) {
      const long at = positions[r];
      const float* key = qkv + r * stride + static_cast<long>(h.heads) * h.headDim;
      const float* value = key + static_cast<long>(h.kvHeads) * h.headDim;
      for (int k = 0; k < h.kvHeads; k++) {
        float* keyTo = keys + slots[r] * slotSize + k * headSize + at / kLanes * h.headDim * kLanes + at % kLanes;
        float* valueTo = values + slots[r] * slotSize + k * headSize + at * h.headDim;
        for (int d = 0; d < h.headDim; d++) {
          keyTo[d * kLanes] = key[k * h.headDim + d];
          valueTo[d] = value[k * h.headDim + d];
        }
      }
    }
  });
  pool.run(tasks, [&](long task) {
    static thread_local Scratch scoreScratch;
    const long end = std::min(rows, (task + 1) * kRowsTogether);
    for (long r = task * kRowsTogether; r < end;) {
      // Neighbouring positions of one slot, of a prompt, share the reads of the cache.
      long together = 1;
      while (together < kQueries && r + together < end && slots[r + together] == slots[r] &&
             positions[r + together] == positions[r] + together)
        together++;
      const float *q[kQueries], *keyBlocks[kQueries], *slotValues[kQueries];
      float* to[kQueries];
      long counts[kQueries], hidden[kQueries];
      // The whole blocks of keys before the first row's window are left out.
      const auto skipped = [&](long row) { return h.firstSeen(positions[row]) / kLanes * kLanes; };
      const long begin = skipped(r);
      const auto place = [&](int i, long row, int head) {
        const long at = slots[row] * slotSize + head / h.group() * headSize;
        q[i] = qkv + row * stride + static_cast<long>(head) * h.headDim;
        keyBlocks[i] = keys + at + begin * h.headDim;
        slotValues[i] = values + at + begin * h.headDim;
        to[i] = out + row * outStride + static_cast<long>(head) * h.headDim;
        counts[i] = positions[row] + 1 - begin;
        hidden[i] = h.firstSeen(positions[row]) - begin;
      };
      const long scoreStride = blocksOf(positions[r] + kQueries - begin) * kLanes;
      float* scores = scoreScratch.floats(static_cast<size_t>(scoreStride) * kQueries);
      const float* nextKeys[kQueries];
      const auto attend = [&](auto* rowsTogether, bool more) {
        rowsTogether(to, q, counts, hidden, keyBlocks, slotValues, more ? nextKeys : nullptr, h.headDim, scale,
                     scores, scoreStride);
      };
      if (together == kQueries) {
        for (int head = 0; head < h.heads; head++) {
          for (int i = 0; i < kQueries; i++) place(i, r + i, head);
          attend(attendRows<kQueries, true>, false);
        }
        r += kQueries;
        continue;
      }
      for (int first = 0; first < h.heads;) {
        const int left = std::min(h.heads - first, h.group() > 1 ? h.group() - first % h.group() : h.heads);
        const int handled = left >= kQueries ? kQueries : left >= 2 && h.group() > 1 ? 2 : 1;
        for (int i = 0; i < handled; i++) place(i, r, first + i);
        const int next = first + handled < h.heads ? first + handled : 0;
        const long nextRow = next > 0 ? r : r + 1;
        const bool more = nextRow < rows;
        for (int i = 0; more && i < handled; i++)
          nextKeys[i] = keys + slots[nextRow] * slotSize + std::min(next + i, h.heads - 1) / h.group() * headSize +
                        skipped(nextRow) * h.headDim;
        const bool shared = h.group() > 1 || handled == 1;
        if (handled == 1) attend(attendRows<1, true>, more);
        else if (handled == 2) attend(attendRows<2, true>, more);
        else if (shared) attend(attendRows<kQueries, true>, more);
        else attend(attendRows<kQueries, false>, more);
        first += handled;
      }
      r++;
    }
  });
}

inline void cacheCopy(Pool&, float* keys, float* values, long from, long to, long length, long capacity, Heads h) {
  const long slotSize = static_cast<long>(cacheSlotSize(capacity, h)), headSize = slotSize / h.kvHeads;
  for (int k = 0; k < h.kvHeads; k++) {
    const long source = from * slotSize + k * headSize, target = to * slotSize + k * headSize;
    std::copy_n(keys + source, blocksOf(length) * kLanes * h.headDim, keys + target);
    std::copy_n(values + source, length * h.headDim, values + target);
  }
}

}  // namespace DRMAS_ISA
}  // namespace drmas
