// The WebAssembly face of the kernels: one exported function a kernel, beside addon.cpp. src/tensor/wasm checks the
// arguments and passes addresses. `npm run build:wasm` compiles this file alone, for a 128-bit vector set, without an
// operating system or a C++ library: wasm/ has the few parts of the standard library that the kernels use.
#include "cache.h"
#include "elementwise.h"
#include "head.h"
#include "linear.h"
#include "norm.h"
#include "optimizer.h"

#define DRMAS_EXPORT(name) extern "C" __attribute__((export_name(#name)))

namespace drmas {
namespace {

namespace kernels = DRMAS_ISA;

/// Nobody runs constructors.
[[clang::require_constant_initialization]] Pool pool;

// The threads: one calls the kernels, every other one is in `work` (src/tensor/wasm/threads.ts).
DRMAS_EXPORT(setThreads) void setThreads(int threads) { pool.setThreads(threads); }
DRMAS_EXPORT(work) void work() { pool.work(); }
DRMAS_EXPORT(leave) void leave() { pool.leave(); }
DRMAS_EXPORT(abandon) void abandon() { pool.abandon(); }
DRMAS_EXPORT(stop) void stop() { pool.stop(); }

DRMAS_EXPORT(packedSize) size_t packedSize(long inputs, long outputs) { return kernels::packedSize(inputs, outputs); }

DRMAS_EXPORT(pack) void pack(float* packed, const float* weight, long inputs, long outputs, bool transpose) {
  kernels::pack(pool, packed, weight, inputs, outputs, transpose);
}

DRMAS_EXPORT(packBfloat16)
void packBfloat16(Bfloat16* packed, const Bfloat16* weight, long inputs, long outputs, bool transpose) {
  kernels::pack(pool, packed, weight, inputs, outputs, transpose);
}

DRMAS_EXPORT(linear)
void linear(float* out, const float* x, const float* packed, long rows, long inputs, long outputs, bool accumulate) {
  kernels::linear(pool, out, x, packed, rows, inputs, outputs, accumulate);
}

DRMAS_EXPORT(linearBfloat16)
void linearBfloat16(float* out, const float* x, const Bfloat16* packed, long rows, long inputs, long outputs,
                    bool accumulate) {
  kernels::linear(pool, out, x, packed, rows, inputs, outputs, accumulate);
}

DRMAS_EXPORT(linearWeightGradient)
void linearWeightGradient(float* dWeight, const float* x, const float* dOut, long rows, long inputs, long outputs) {
  kernels::linearWeightGradient(pool, dWeight, x, dOut, rows, inputs, outputs);
}

DRMAS_EXPORT(rmsNorm)
void rmsNorm(float* out, float* inverse, const float* x, const float* gain, long rows, long width, float epsilon) {
  kernels::rmsNorm(pool, out, inverse, x, gain, rows, width, epsilon);
}

DRMAS_EXPORT(rmsNormBackward)
void rmsNormBackward(float* dx, float* dGain, const float* dOut, const float* x, const float* gain,
                     const float* inverse, long rows, long width) {
  kernels::rmsNormBackward(pool, dx, dGain, dOut, x, gain, inverse, rows, width);
}

DRMAS_EXPORT(headNorm)
void headNorm(float* qkv, float* queryInverse, float* keyInverse, const float* queryGain, const float* keyGain,
              long rows, int heads, int kvHeads, int headDim, float epsilon) {
  kernels::headNorm(pool, qkv, queryInverse, keyInverse, queryGain, keyGain, rows, {heads, kvHeads, headDim}, epsilon);
}

DRMAS_EXPORT(headNormBackward)
void headNormBackward(float* dQkv, float* dQueryGain, float* dKeyGain, const float* qkv, const float* queryGain,
                      const float* keyGain, const float* queryInverse, const float* keyInverse, long rows, int heads,
                      int kvHeads, int headDim) {
  kernels::headNormBackward(pool, dQkv, dQueryGain, dKeyGain, qkv, queryGain, keyGain, queryInverse, keyInverse, rows,
                            {heads, kvHeads, headDim});
}

DRMAS_EXPORT(rope)
void rope(float* qkv, const float* table, const int32_t* positions, long rows, int heads, int kvHeads, int headDim,
          bool inverse) {
  kernels::rope(pool, qkv, table, positions, rows, {heads, kvHeads, headDim}, inverse);
}

DRMAS_EXPORT(attention)
void attention(float* out, float* logSumExp, const float* qkv, const int32_t* starts, long sequences, int heads,
               int kvHeads, int headDim) {
  kernels::attention(pool, out, logSumExp, qkv, starts, sequences, {heads, kvHeads, headDim});
}

DRMAS_EXPORT(attentionBackward)
void attentionBackward(float* dQkv, const float* dOut, const float* out, const float* logSumExp, const float* qkv,
                       const int32_t* starts, long sequences, int heads, int kvHeads, int headDim) {
  kernels::attentionBackward(pool, dQkv, dOut, out, logSumExp, qkv, starts, sequences, {heads, kvHeads, headDim});
}

DRMAS_EXPORT(cacheSlotSize) size_t cacheSlotSize(long capacity, int heads, int kvHeads, int headDim) {
  return kernels::cacheSlotSize(capacity, {heads, kvHeads, headDim});
}

DRMAS_EXPORT(attentionCached)
void attentionCached(float* out, float* keys, float* values, const float* qkv, const int32_t* slots,
                     const int32_t* positions, long rows, long capacity, int heads, int kvHeads, int headDim) {
  kernels::attentionCached(pool, out, keys, values, qkv, slots, positions, rows, capacity, {heads, kvHeads, headDim});
}

DRMAS_EXPORT(cacheCopy)
void cacheCopy(float* keys, float* values, long from, long to, long length, long capacity, int heads, int kvHeads,
               int headDim) {
  kernels::cacheCopy(pool, keys, values, from, to, length, capacity, {heads, kvHeads, headDim});
}

DRMAS_EXPORT(swiglu) void swiglu(float* out, const float* gateUp, long rows, long feedForward) {
  kernels::swiglu(pool, out, gateUp, rows, feedForward);
}

DRMAS_EXPORT(swigluBackward)
void swigluBackward(float* dGateUp, const float* dOut, const float* gateUp, long rows, long feedForward) {
  kernels::swigluBackward(pool, dGateUp, dOut, gateUp, rows, feedForward);
}

DRMAS_EXPORT(embed) void embed(float* out, const float* table, const int32_t* tokens, long rows, long width) {
  kernels::embed(pool, out, table, tokens, rows, width);
}

DRMAS_EXPORT(embedBfloat16)
void embedBfloat16(float* out, const Bfloat16* table, const int32_t* tokens, long rows, long width) {
  kernels::embed(pool, out, table, tokens, rows, width);
}

DRMAS_EXPORT(embedBackward)
void embedBackward(float* dTable, const float* dOut, const int32_t* tokens, long rows, long width) {
  kernels::embedBackward(pool, dTable, dOut, tokens, rows, width);
}

DRMAS_EXPORT(tokenLogprobs)
void tokenLogprobs(float* logprobs, float* logSumExp, float* entropy, const float* logits, const int32_t* targets,
                   const float* inverseTemperature, long rows, long vocabSize) {
  kernels::tokenLogprobs(pool, logprobs, logSumExp, entropy, logits, targets, inverseTemperature, rows, vocabSize);
}

DRMAS_EXPORT(tokenLogprobsBackward)
void tokenLogprobsBackward(float* logits, const float* dLogprobs, const float* logSumExp, const int32_t* targets,
                           const float* inverseTemperature, long rows, long vocabSize) {
  kernels::tokenLogprobsBackward(pool, logits, dLogprobs, logSumExp, targets, inverseTemperature, rows, vocabSize);
}

DRMAS_EXPORT(tokenEntropyBackward)
void tokenEntropyBackward(float* logits, const float* dLogprobs, const float* dEntropy, const float* logSumExp,
                          const float* entropy, const int32_t* targets, const float* inverseTemperature, long rows,
                          long vocabSize) {
  kernels::tokenEntropyBackward(pool, logits, dLogprobs, dEntropy, logSumExp, entropy, targets, inverseTemperature, rows,
                                vocabSize);
}

DRMAS_EXPORT(sampleTokens)
void sampleTokens(int32_t* tokens, float* logprobs, const float* logits, const float* uniforms,
                  const float* inverseTemperature, const int32_t* topK, const float* topP, long rows, long vocabSize) {
  kernels::sampleTokens(pool, tokens, logprobs, logits, uniforms, inverseTemperature, topK, topP, rows, vocabSize);
}

DRMAS_EXPORT(sumOfSquares) double sumOfSquares(const float* x, long length) {
  return kernels::sumOfSquares(pool, x, length);
}

DRMAS_EXPORT(add) void add(float* out, const float* x, long length) { kernels::add(pool, out, x, length); }

DRMAS_EXPORT(adamw)
void adamw(float* weights, const float* gradient, float* firstMoment, float* secondMoment, long length,
           double learningRate, double beta1, double beta2, double epsilon, double weightDecay, double step,
           double gradientScale) {
  const AdamW settings{learningRate, beta1, beta2, epsilon, weightDecay, step, gradientScale};
  kernels::adamw(pool, weights, gradient, firstMoment, secondMoment, length, settings);
}

}  // namespace
}  // namespace drmas
