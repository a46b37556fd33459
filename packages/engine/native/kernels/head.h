// The output head: log-probs, their gradient, and sampling, a row of logits at a time.
//
// For a row with z = logits · inverseTemperature: the maximum, then Σ e^(z − max) in 16 lanes over the row in order
// and the lane tree. Sampling and training share `softmaxRow`, so their log-probs have the same bits.
#pragma once
#include <algorithm>
#include <limits>
#include <vector>

#include "norm.h"
#include "../simd/simd.h"
#include "../types.h"

namespace drmas {
namespace DRMAS_ISA {

struct RowSum {
  float largest, sum, weighted;  // max z, Σ e^(z − max), Σ e^(z − max) (z − max)
  float logSumExp() const { return largest + std::log(sum); }
};

/// Writes e^(z − max) to `weights` unless that is null.
inline RowSum softmaxRow(const float* logits, float inverseTemperature, long vocabSize, float* weights) {
  const F16 factor = broadcast(inverseTemperature);
  const float lowest = -std::numeric_limits<float>::infinity();
  F16 top = broadcast(lowest);
  forVectors(
      vocabSize, [&](long i) { top = max(top, load(logits + i) * factor); },
      [&](long i, int rest) { top = max(top, keepLanes(loadPartial(logits + i, rest) * factor, rest, lowest)); });
  RowSum row{maxLane(top), 0.f, 0.f};
  const F16 shift = broadcast(row.largest);
  F16 sum = zero(), weighted = zero();
  forVectors(
      vocabSize,
      [&](long i) {
        const F16 z = load(logits + i) * factor - shift;
        const F16 e = exp(z);
        sum = sum + e;
        weighted = fma(e, z, weighted);
        if (weights) store(weights + i, e);
      },
      [&](long i, int rest) {
        const F16 z = loadPartial(logits + i, rest) * factor - shift;
        const F16 e = keepLanes(exp(z), rest, 0.f);
        sum = sum + e;
        weighted = fma(e, z, weighted);
        if (weights) storePartial(weights + i, e, rest);
      });
  row.sum = sumLanes(sum);
  row.weighted = sumLanes(weighted);
  return row;
}

inline void tokenLogprobs(Pool& pool, float* logprobs, float* logSumExp, float* entropy, const float* logits,
                          const int32_t* targets, const float* inverseTemperature, long rows, long vocabSize) {
  forRows(pool, rows, [&](long r) {
    const float* row = logits + r * vocabSize;
    const RowSum s = softmaxRow(row, inverseTemperature[r], vocabSize, nullptr);
    logSumExp[r] = s.logSumExp();
    logprobs[r] = row[targets[r]] * inverseTemperature[r] - logSumExp[r];
    // −Σ p log p = log Σ e^(z − max) − Σ p (z − max)
    entropy[r] = std::log(s.sum) - s.weighted / s.sum;
  });
}

inline void tokenLogprobsBackward(Pool& pool, float* logits, const float* dLogprobs, const float* logSumExp,
                                  const int32_t* targets, const float* inverseTemperature, long rows, long vocabSize) {
  forRows(pool, rows, [&](long r) {
    float* row = logits + r * vocabSize;
    const float upstream = dLogprobs[r] * inverseTemperature[r];
    const F16 factor = broadcast(inverseTemperature[r]), lse = broadcast(logSumExp[r]), minus = broadcast(-upstream);
    forVectors(
        vocabSize, [&](long i) { store(row + i, exp(load(row + i) * factor - lse) * minus); },
        [&](long i, int rest) {
          storePartial(row + i, exp(loadPartial(row + i, rest) * factor - lse) * minus, rest);
        });
    row[targets[r]] += upstream;
  });
}

inline void tokenEntropyBackward(Pool& pool, float* logits, const float* dLogprobs, const float* dEntropy,
                                 const float* logSumExp, const float* entropy, const int32_t* targets,
                                 const float* inverseTemperature, long rows, long vocabSize) {
  forRows(pool, rows, [&](long r) {
    float* row = logits + r * vocabSize;
    const float upstream = dLogprobs[r] * inverseTemperature[r];
    const F16 factor = broadcast(inverseTemperature[r]), lse = broadcast(logSumExp[r]), minus = broadcast(-upstream);
    const F16 spread = broadcast(-dEntropy[r] * inverseTemperature[r]), nats = broadcast(entropy[r]);
    const auto gradient = [&](F16 logit) {
      const F16 logP = logit * factor - lse;
      return exp(logP) * fma(spread, logP + nats, minus);
    };
    forVectors(
        vocabSize, [&](long i) { store(row + i, gradient(load(row + i))); },
        [&](long i, int rest) { storePartial(row + i, gradient(loadPartial(row + i, rest)), rest); });
    row[targets[r]] += upstream;
  });
}

/// Sets to 0 the weights outside the topK most probable tokens and, of those, outside the smallest set reaching topP.
inline void keepMostProbable(float* weights, long vocabSize, long topK, float topP, std::vector<int32_t>& order) {
  order.clear();
  for (long v = 0; v < vocabSize; v++)
    if (weights[v] > 0.f) order.push_back(static_cast<int32_t>(v));
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return weights[a] != weights[b] ? weights[a] > weights[b] : a < b;
  });
  size_t keep = order.size();
  if (topK > 0) keep = std::min(keep, static_cast<size_t>(topK));
  if (topP < 1.f) {
    double total = 0, reached = 0;
    for (size_t i = 0; i < keep; i++) total += weights[order[i]];
    size_t needed = 0;
    while (needed < keep && reached < static_cast<double>(topP) * total) reached += weights[order[needed++]];
    keep = std::max<size_t>(1, needed);
  }
  for (size_t i = keep; i < order.size(); i++) weights[order[i]] = 0.f;
}

constexpr long kMark = 64;
inline long marksOf(long vocabSize) { return (vocabSize + kMark - 1) / kMark; }

/// The cumulative distributions of kRows rows of weights at the same time, since within a row each sum waits for the
/// one before it. What they are after every kMark tokens is kept in `marks`, row by row.
template <int kRows>
inline void accumulate(const float* weights, long vocabSize, double* marks) {
  double sum[kRows] = {0};
  for (long first = 0, mark = 0; first < vocabSize; first += kMark, mark++) {
    const long last = std::min(vocabSize, first + kMark);
    for (long v = first; v < last; v++)
#pragma GCC unroll 4
      for (int r = 0; r < kRows; r++) sum[r] += weights[r * vocabSize + v];
    for (int r = 0; r < kRows; r++) marks[r * marksOf(vocabSize) + mark] = sum[r];
  }
}

/// The first token at which the cumulative distribution exceeds `uniform` of its total; should rounding leave that
/// unreached, the last one with any weight.
inline long invert(const float* weights, long vocabSize, const double* marks, float uniform) {
  const long count = marksOf(vocabSize);
  const double target = static_cast<double>(uniform) * marks[count - 1];
  long mark = 0;
  while (mark < count && !(marks[mark] > target)) mark++;
  double reached = mark > 0 ? marks[mark - 1] : 0;
  for (long v = mark * kMark; v < vocabSize; v++) {
    reached += weights[v];
    if (reached > target) return v;
  }
  for (long v = vocabSize - 1; v > 0; v--)
    if (weights[v] > 0.f) return v;
  return 0;
}

inline void sampleTokens(Pool& pool, int32_t* tokens, float* logprobs, const float* logits, const float* uniforms,
                         const float* inverseTemperature, const int32_t* topK, const float* topP, long rows,
                         long vocabSize) {
  constexpr int kTogether = 4;
  pool.run((rows + kTogether - 1) / kTogether, [&](long task) {
    static thread_local Scratch scratch;
    static thread_local std::vector<int32_t> order;
    static thread_local std::vector<double> marks;
    float* weights = scratch.floats(static_cast<size_t>(kTogether * vocabSize));
    marks.resize(static_cast<size_t>(kTogether * marksOf(vocabSize)));
    const long first = task * kTogether;
    const int count = static_cast<int>(std::min<long>(kTogether, rows - first));
    const auto inverseOf = [&](long r) { return inverseTemperature[r] == 0.f ? 1.f : inverseTemperature[r]; };
    float logSumExp[kTogether];
    bool draws = false;
    for (int i = 0; i < count; i++) {
      const long r = first + i;
      float* rowWeights = weights + i * vocabSize;
      logSumExp[i] = softmaxRow(logits + r * vocabSize, inverseOf(r), vocabSize, rowWeights).logSumExp();
      if (inverseTemperature[r] == 0.f) continue;
      draws = true;
      if ((topK[r] > 0 && topK[r] < vocabSize) || topP[r] < 1.f)
        keepMostProbable(rowWeights, vocabSize, topK[r], topP[r], order);
    }
    if (draws && count == kTogether)
      accumulate<kTogether>(weights, vocabSize, marks.data());
    else if (draws)
      for (int i = 0; i < count; i++)
        accumulate<1>(weights + i * vocabSize, vocabSize, marks.data() + i * marksOf(vocabSize));
    for (int i = 0; i < count; i++) {
      const long r = first + i;
      const float* row = logits + r * vocabSize;
      long chosen = 0;
      if (inverseTemperature[r] == 0.f) {
        for (long v = 1; v < vocabSize; v++)
          if (row[v] > row[chosen]) chosen = v;
      } else {
        chosen = invert(weights + i * vocabSize, vocabSize, marks.data() + i * marksOf(vocabSize), uniforms[r]);
      }
      tokens[r] = static_cast<int32_t>(chosen);
      logprobs[r] = row[chosen] * inverseOf(r) - logSumExp[i];
    }
  });
}

}  // namespace DRMAS_ISA
}  // namespace drmas
