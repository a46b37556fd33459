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

constexpr int kQueries = 4;        // handled together, to reuse what is loaded of keys and values
constexpr int kHeadsTogether = 8;  // the most heads of rows that begin alike
constexpr long kRowsTogether = 8;  // rows of a task
constexpr long kLeastAlike = 2;    // the fewest common blocks of keys for which rows are handled together

/// A number of queries that the compiler knows.
template <int kCount>
struct Count {
  constexpr operator int() const { return kCount; }
};

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
                      long first, long last, int headDim, const Ahead& ahead) {
  // Enough independent sums to hide the latency of multiply-add.
  constexpr int kTogether = kRows == 1 || (kRows == 2 && kShared) ? 4 : 2;
  long b = first;
  for (; b + kTogether <= last; b += kTogether) {
    for (int i = 0; i < kTogether; i++) ahead(b + i);
    dotBlocksTile<kRows, kTogether, kShared>(products, productStride, x, blocks, b, headDim);
  }
  for (; b < last; b++) {
    ahead(b);
    dotBlocksTile<kRows, 1, kShared>(products, productStride, x, blocks, b, headDim);
  }
}

/// The keys `first` to counts[r] - 1 that a query r weighs; `shortest` is the least of the counts.
struct Span {
  long first;
  const long* counts;
  long shortest;
};

/// Columns c to c + 16 kChunks of out[r] = the sum over a span's j of scores[r][j] · values[r][j], j in order: together
/// as far as all rows have keys, then each row's own. A span that does not begin at key 0 goes on with the sums that
/// `out` has. With `inverse` the sums are finished: they are multiplied by inverse[r].
template <int kRows, bool kShared, int kChunks, class Ahead>
inline void weighColumns(float* const* out, const float* scores, long scoreStride, const float* inverse, Span span,
                         const float* const* values, int c, int headDim, const Ahead& ahead) {
  F16 sum[kRows][kChunks];
  const float* from[kRows];
  const auto width = [&](int chunk) { return std::min(kLanes, headDim - c - chunk * kLanes); };
#pragma GCC unroll 4
  for (int r = 0; r < kRows; r++) {
    from[r] = values[kShared ? 0 : r] + c;
#pragma GCC unroll 2
    for (int i = 0; i < kChunks; i++)
      sum[r][i] = span.first == 0 ? zero() : loadUpTo(out[r] + c + i * kLanes, width(i));
  }
  // Whole vectors, which may hold some of the next keys' values in lanes that are not stored, as far as there are
  // such keys.
  const long rest = span.shortest * headDim - c - kChunks * kLanes;
  const long together = std::max(span.first, rest < 0 ? 0 : rest / headDim + 1);
  for (long first = span.first; first < together; first += kLanes) {
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
      const float* tail = from[r] + i * kLanes;
      for (long j = together; j < span.counts[r]; j++)
        sum[r][i] = fma(broadcast(scores[r * scoreStride + j]), loadUpTo(tail + j * headDim, width(i)), sum[r][i]);
      storeUpTo(out[r] + c + i * kLanes, inverse ? sum[r][i] * broadcast(inverse[r]) : sum[r][i], width(i));
    }
}

template <int kRows, bool kShared, class Ahead>
inline void weighValues(float* const* out, const float* scores, long scoreStride, const float* inverse, Span span,
                        const float* const* values, int headDim, const Ahead& ahead) {
  for (int c = 0; c < headDim; c += 2 * kLanes) {
    const auto weigh = headDim - c > kLanes ? weighColumns<kRows, kShared, 2, Ahead>
                                            : weighColumns<kRows, kShared, 1, Ahead>;
    weigh(out, scores, scoreStride, inverse, span, values, c, headDim, ahead);
  }
}

/// Prefetches the block of 16 positions of keys or values.
inline void callForBlock(const float* from, long block, int headDim) {
  const long size = static_cast<long>(headDim) * kLanes;
  for (long i = 0; i < size; i += kLanes) __builtin_prefetch(from + block * size + i, 0, 2);
}

/// kRows queries with counts[r] keys each, of one head (kShared: all rows have the keys and values of row 0) or of
/// several. The first hidden[r] of the keys are before the query's window. `scores` has room for kRows rows of
/// scoreStride floats. While a block of 16 positions is computed, the same block of the next operand is prefetched:
/// first of the values, then of nextKeys (kRows of them, or null).
template <int kRows, bool kShared>
inline void attendRows(float* const* out, const float* const* q, const long* counts, const long* hidden,
                       const float* const* keyBlocks, const float* const* values, const float* const* nextKeys,
                       int headDim, float scale, float* scores, long scoreStride) {
  const auto callFor = [&](const float* const* from, long block) {
    for (int r = 0; r < (kShared ? 1 : kRows); r++) callForBlock(from[r], block, headDim);
  };
  const long longest = *std::max_element(counts, counts + kRows);
  dotBlocks<kRows, kShared>(scores, scoreStride, q, keyBlocks, 0, blocksOf(longest), headDim,
                            [&](long block) { callFor(values, block); });
  float inverse[kRows];
  for (int r = 0; r < kRows; r++) {
    float* row = scores + r * scoreStride;
    hideScores(row, hidden[r]);
    inverse[r] = 1.f / softmaxScores(row, counts[r], scale).total;
  }
  weighValues<kRows, kShared>(out, scores, scoreStride, inverse, {0, counts, *std::min_element(counts, counts + kRows)},
                              values, headDim, [&](long block) {
                                if (nextKeys) callFor(nextKeys, block);
                              });
}

/// Parts of the keys of rows that begin alike, in blocks of 16 positions: visit(first, last, from, to) for blocks that
/// the rows `first` to `last` - 1 have in common, and after them for the rest of each row alone, in order.
/// @param alike [rows] The blocks that a row has in common with the row before it
/// @param ends [rows] The blocks of each row
template <class Visit>
inline void forAlikeBlocks(const long* alike, const long* ends, int first, int last, long from, const Visit& visit) {
  if (last - first == 1) return visit(first, last, from, ends[first]);
  const long to = *std::min_element(alike + first + 1, alike + last);
  if (to > from) visit(first, last, from, to);
  for (int start = first, i = first + 1; i <= last; i++)
    if (i == last || alike[i] == to) {
      forAlikeBlocks(alike, ends, start, i, to, visit);
      start = i;
    }
}

/// Calls tile(count, i) for queries first to last - 1, in tiles of kQueries or fewer.
template <class Tile>
inline void forQueries(int first, int last, const Tile& tile) {
  for (; first + kQueries <= last; first += kQueries) tile(Count<kQueries>(), first);
  for (; first + 2 <= last; first += 2) tile(Count<2>(), first);
  if (first < last) tile(Count<1>(), first);
}

/// Up to kRowsTogether rows of different slots that begin alike. Of keys and values that rows have in common, the first
/// row's are read, once for all of them.
struct AlikeRows {
  int rows = 0;
  const float *q[kRowsTogether], *keys[kRowsTogether], *values[kRowsTogether];  // of the first head
  float* out[kRowsTogether];
  long counts[kRowsTogether], hidden[kRowsTogether], alike[kRowsTogether], ends[kRowsTogether];

  /// The rows' queries of `heads` heads in a row, which have the keys and values of head kvHead.
  void attend(int head, int heads, int kvHead, Heads h, long headSize, float scale, Scratch& scratch) const {
    constexpr int kMost = kRowsTogether * kHeadsTogether;
    const int queries = rows * heads;
    const long scoreStride = *std::max_element(ends, ends + rows) * kLanes;
    float* scores = scratch.floats(static_cast<size_t>(scoreStride) * queries);
    const float *q[kMost], *keys[kRowsTogether], *values[kRowsTogether];
    float *to[kMost], inverse[kMost];
    for (int r = 0; r < rows; r++) {
      keys[r] = this->keys[r] + kvHead * headSize;
      values[r] = this->values[r] + kvHead * headSize;
      for (int i = 0; i < heads; i++) {
        q[r * heads + i] = this->q[r] + static_cast<long>(head + i) * h.headDim;
        to[r * heads + i] = this->out[r] + static_cast<long>(head + i) * h.headDim;
      }
    }
    forAlikeBlocks(alike, ends, 0, rows, 0, [&](int first, int last, long from, long end) {
      forQueries(first * heads, last * heads, [&](auto count, int i) {
        dotBlocks<count, true>(scores + i * scoreStride, scoreStride, q + i, keys + first, from, end, h.headDim,
                               [&](long block) {
                                 if (i == first * heads) callForBlock(values[first], block, h.headDim);
                               });
      });
    });
    for (int i = 0; i < queries; i++) {
      hideScores(scores + i * scoreStride, hidden[i / heads]);
      inverse[i] = 1.f / softmaxScores(scores + i * scoreStride, counts[i / heads], scale).total;
    }
    const bool more = kvHead + 1 < h.kvHeads;
    forAlikeBlocks(alike, ends, 0, rows, 0, [&](int first, int last, long from, long end) {
      const bool alone = last - first == 1;
      long counts[kQueries];
      std::fill_n(counts, kQueries, alone ? this->counts[first] : end * kLanes);
      forQueries(first * heads, last * heads, [&](auto count, int i) {
        weighValues<count, true>(to + i, scores + i * scoreStride, scoreStride, alone ? inverse + i : nullptr,
                                 {from * kLanes, counts, counts[0]}, values + first, h.headDim, [&](long block) {
                                   if (more && i == first * heads)
                                     callForBlock(keys[first] + headSize, block, h.headDim);
                                 });
      });
    });
  }
};

/// Keys of a slot: [kvHead][block][headDim][16]; values: [kvHead][position][headDim]. Both are padded to whole blocks.
inline size_t cacheSlotSize(long capacity, Heads h) {
  return static_cast<size_t>(blocksOf(capacity)) * kLanes * h.kvHeads * h.headDim;
}

inline void attentionCached(Pool& pool, float* out, float* keys, float* values, const float* qkv, const int32_t* slots,
                            const int32_t* positions, const int32_t* alike, long rows, long capacity, Heads h) {
  const float scale = 1.f / std::sqrt(static_cast<float>(h.headDim));
  const long stride = h.stride(), outStride = static_cast<long>(h.heads) * h.headDim;
  const long slotSize = static_cast<long>(cacheSlotSize(capacity, h));
  const long headSize = slotSize / h.kvHeads;
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
  // The whole blocks of keys before a row's window are left out.
  const auto skipped = [&](long row) { return h.firstSeen(positions[row]) / kLanes * kLanes; };
  // A row's own keys are few. Few numbers for each of them would make its sums wait for one another.
  const bool worthwhile = h.group() * h.headDim >= 32;
  /// Rows from `first` on, each of which begins like the one before it.
  const auto alikeRows = [&](long first, long end) {
    AlikeRows some;
    const long begin = skipped(first);
    for (long r = first; r < end && (r == first || worthwhile); r++) {
      const long least = r == first ? 0 : std::min(alike[r], std::min(positions[r - 1], positions[r]) + 1);
      const long common = least / kLanes - begin / kLanes;
      if (r > first && (common < kLeastAlike || skipped(r) != begin || slots[r] == slots[r - 1])) break;
      const int i = some.rows++;
      some.q[i] = qkv + r * stride;
      some.keys[i] = keys + slots[r] * slotSize + begin * h.headDim;
      some.values[i] = values + slots[r] * slotSize + begin * h.headDim;
      some.out[i] = out + r * outStride;
      some.counts[i] = positions[r] + 1 - begin;
      some.hidden[i] = h.firstSeen(positions[r]) - begin;
      some.alike[i] = common;
      some.ends[i] = blocksOf(some.counts[i]);
    }
    return some;
  };
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
      const AlikeRows some = alikeRows(r, end);
      if (some.rows > 1) {
        for (int head = 0; head < h.heads;) {
          const int heads = std::min(kHeadsTogether, h.group() - head % h.group());
          some.attend(head, heads, head / h.group(), h, headSize, scale, scoreScratch);
          head += heads;
        }
        r += some.rows;
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
