// Every kernel of one instruction set, once for each of several odd sizes, on inputs that depend on nothing. Writes what they
// computed, one line a buffer: its name and its floats as hexadecimal bits. `npm run test:arm` compares what an emulated ARM
// processor writes with what this one does; `npm run test:sanitizers` runs it with several threads under the thread sanitizer.
//
// usage: every-operation THREADS   (compiled with -DDRMAS_ISA=<set> beside native/kernels.cpp of the same set)
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "../../native/table.h"

#define DRMAS_JOIN_(a, b) a##b
#define DRMAS_JOIN(a, b) DRMAS_JOIN_(a, b)

namespace drmas {
extern const KernelTable DRMAS_JOIN(table_, DRMAS_ISA);
}

using namespace drmas;

namespace {

using Floats = std::vector<float>;
using Integers = std::vector<int32_t>;

uint64_t state = 1;

/// Uniform in [-spread, spread), by a linear congruential generator (Knuth's MMIX).
Floats noise(long length, float spread = 1.f) {
  Floats values(static_cast<size_t>(length));
  for (float& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = (static_cast<float>(state >> 40) / 8388608.f - 1.f) * spread;
  }
  return values;
}

/// Rounded towards zero.
std::vector<Bfloat16> coarseNoise(long length) {
  std::vector<Bfloat16> values;
  for (const float value : noise(length)) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    values.push_back(static_cast<Bfloat16>(bits >> 16));
  }
  return values;
}

Integers below(long length, int32_t limit) {
  Integers values(static_cast<size_t>(length));
  for (int32_t& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<int32_t>((state >> 33) % static_cast<uint64_t>(limit));
  }
  return values;
}

Floats zeros(long length) { return Floats(static_cast<size_t>(length)); }

void write(const std::string& name, const float* values, size_t count) {
  std::printf("%s", name.c_str());
  for (size_t i = 0; i < count; i++) {
    uint32_t bits;
    std::memcpy(&bits, values + i, 4);
    std::printf(" %08" PRIx32, bits);
  }
  std::printf("\n");
}

struct Sizes {
  long rows, width, feedForward, vocabSize;
  int heads, kvHeads, headDim;
};

void run(const KernelTable& k, Pool& pool, const Sizes& s) {
  const std::string at = std::to_string(s.rows) + "x" + std::to_string(s.width);
  const auto keep = [&](const char* name, const Floats& values) { write(at + "/" + name, values.data(), values.size()); };
  const long rows = s.rows, width = s.width, feedForward = s.feedForward, vocab = s.vocabSize;
  const Floats x = noise(rows * width);

  for (const bool transpose : {false, true}) {
    Floats packed = zeros(static_cast<long>(k.packedSize(width, feedForward)));
    k.pack(pool, packed.data(), noise(width * feedForward).data(), width, feedForward, transpose);
    Floats hidden = noise(rows * feedForward);
    k.linear(pool, hidden.data(), x.data(), packed.data(), rows, width, feedForward, transpose);
    keep("linear", hidden);
    std::vector<Bfloat16> packedCoarse(packed.size());
    k.packBfloat16(pool, packedCoarse.data(), coarseNoise(width * feedForward).data(), width, feedForward, transpose);
    Floats coarse = noise(rows * feedForward);
    k.linearBfloat16(pool, coarse.data(), x.data(), packedCoarse.data(), rows, width, feedForward, transpose);
    keep("linearBfloat16", coarse);
    Floats gradient = noise(width * feedForward);
    k.linearWeightGradient(pool, gradient.data(), x.data(), hidden.data(), rows, width, feedForward);
    keep("linearWeightGradient", gradient);
  }

  const Floats gain = noise(width);
  Floats normed = zeros(rows * width), inverse = zeros(rows), dx = noise(rows * width), dGain = noise(width);
  k.rmsNorm(pool, normed.data(), inverse.data(), x.data(), gain.data(), rows, width, 1e-5f);
  k.rmsNormBackward(pool, dx.data(), dGain.data(), normed.data(), x.data(), gain.data(), inverse.data(), rows, width);
  for (const Floats& each : {normed, inverse, dx, dGain}) keep("norm", each);

  const Heads heads{s.heads, s.kvHeads, s.headDim};
  const long stride = heads.stride(), outWidth = long(s.heads) * s.headDim;
  Floats qkv = noise(rows * stride, 2.f), dHeads = noise(rows * stride);
  Floats queryInverse = zeros(rows * s.heads), keyInverse = zeros(rows * s.kvHeads);
  const Floats queryGain = noise(s.headDim), keyGain = noise(s.headDim), before = qkv;
  Floats dQueryGain = noise(s.headDim), dKeyGain = noise(s.headDim);
  k.headNorm(pool, qkv.data(), queryInverse.data(), keyInverse.data(), queryGain.data(), keyGain.data(), rows, heads, 1e-5f);
  k.headNormBackward(pool, dHeads.data(), dQueryGain.data(), dKeyGain.data(), before.data(), queryGain.data(),
                     keyGain.data(), queryInverse.data(), keyInverse.data(), rows, heads);
  for (const Floats& each : {qkv, queryInverse, keyInverse, dHeads, dQueryGain, dKeyGain}) keep("headNorm", each);

  // Two sequences, the first of a third of the rows.
  const Integers starts{0, static_cast<int32_t>(rows / 3), static_cast<int32_t>(rows)};
  Integers positions, slots;
  for (long r = 0; r < rows; r++) {
    slots.push_back(r < starts[1] ? 0 : 1);
    positions.push_back(static_cast<int32_t>(r < starts[1] ? r : r - starts[1]));
  }
  const Floats table = noise(rows * s.headDim);
  k.rope(pool, qkv.data(), table.data(), positions.data(), rows, heads, false);
  keep("rope", qkv);
  Floats attended = zeros(rows * outWidth), logSumExp = zeros(rows * s.heads), dQkv = zeros(rows * stride);
  k.attention(pool, attended.data(), logSumExp.data(), qkv.data(), starts.data(), 2, heads);
  k.attentionBackward(pool, dQkv.data(), noise(rows * outWidth).data(), attended.data(), logSumExp.data(), qkv.data(),
                      starts.data(), 2, heads);
  for (const Floats& each : {attended, logSumExp, dQkv}) keep("attention", each);
  const long slot = static_cast<long>(k.cacheSlotSize(rows, heads));
  Floats keys = zeros(3 * slot), values = zeros(3 * slot), cached = zeros(rows * outWidth);
  k.attentionCached(pool, cached.data(), keys.data(), values.data(), qkv.data(), slots.data(), positions.data(), rows, rows,
                    heads);
  keep("attentionCached", cached);
  if (cached != attended) std::printf("%s/attentionCached differs from attention\n", at.c_str());
  k.cacheCopy(pool, keys.data(), values.data(), 1, 2, rows - starts[1], rows, heads);
  const int32_t copied = 2, last = static_cast<int32_t>(rows - starts[1] - 1);
  k.attentionCached(pool, cached.data(), keys.data(), values.data(), qkv.data(), &copied, &last, 1, rows, heads);
  keep("cacheCopy", cached);

  const Floats gateUp = noise(rows * 2 * feedForward, 5.f);
  Floats gated = zeros(rows * feedForward), dGateUp = zeros(rows * 2 * feedForward);
  k.swiglu(pool, gated.data(), gateUp.data(), rows, feedForward);
  k.swigluBackward(pool, dGateUp.data(), gated.data(), gateUp.data(), rows, feedForward);
  keep("swiglu", gated);
  keep("swigluBackward", dGateUp);

  const Integers tokens = below(rows, static_cast<int32_t>(vocab));
  Floats embeddings = noise(vocab * width), embedded = zeros(rows * width);
  k.embed(pool, embedded.data(), embeddings.data(), tokens.data(), rows, width);
  k.embedBackward(pool, embeddings.data(), x.data(), tokens.data(), rows, width);
  keep("embed", embedded);
  k.embedBfloat16(pool, embedded.data(), coarseNoise(vocab * width).data(), tokens.data(), rows, width);
  keep("embedBfloat16", embedded);
  keep("embedBackward", embeddings);

  Floats logits = noise(rows * vocab, 6.f), temperature = noise(rows, 0.5f), uniforms = noise(rows, 0.5f);
  for (float& value : uniforms) value += 0.5f;
  for (float& value : temperature) value += 1.f;
  temperature[0] = 0.f;
  const Integers topK = below(rows, 20);
  const Floats topP(static_cast<size_t>(rows), 0.95f);
  Integers sampled(static_cast<size_t>(rows));
  Floats logprobs = zeros(rows), normaliser = zeros(rows), entropy = zeros(rows);
  k.sampleTokens(pool, sampled.data(), logprobs.data(), logits.data(), uniforms.data(), temperature.data(), topK.data(),
                 topP.data(), rows, vocab);
  keep("sampleTokens", Floats(sampled.begin(), sampled.end()));
  keep("sampleTokens", logprobs);
  k.tokenLogprobs(pool, logprobs.data(), normaliser.data(), entropy.data(), logits.data(), tokens.data(),
                  temperature.data(), rows, vocab);
  for (const Floats& each : {logprobs, normaliser, entropy}) keep("tokenLogprobs", each);
  k.tokenLogprobsBackward(pool, logits.data(), x.data(), normaliser.data(), tokens.data(), temperature.data(), rows, vocab);
  keep("tokenLogprobsBackward", logits);

  const long size = rows * width;
  Floats weights = noise(size), first = noise(size), second = noise(size, 0.25f);
  for (float& value : second) value = value < 0 ? -value : value;
  keep("sumOfSquares", {static_cast<float>(k.sumOfSquares(pool, x.data(), size))});
  k.add(pool, dx.data(), x.data(), size);
  k.adamw(pool, weights.data(), x.data(), first.data(), second.data(), size, {1e-3, 0.9, 0.999, 1e-8, 0.01, 3, 0.7});
  for (const Floats& each : {dx, weights, first, second}) keep("adamw", each);
}

}  // namespace

int main(int count, char** words) {
  const int threads = count > 1 ? std::atoi(words[1]) : 1;
  const KernelTable& kernels = DRMAS_JOIN(table_, DRMAS_ISA);
  Pool pool(threads);
  for (const Sizes& sizes : {Sizes{5, 1, 3, 2, 1, 1, 2}, Sizes{67, 31, 45, 139, 4, 2, 6}, Sizes{130, 64, 172, 77, 6, 3, 16},
                             Sizes{33, 97, 20, 300, 3, 1, 34}})
    run(kernels, pool, sizes);
}
