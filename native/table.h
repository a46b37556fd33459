// What one instruction set offers: the kernels as functions on raw pointers. kernels.cpp is compiled once per instruction
// set and fills one table; addon.cpp picks a table at run time. Shapes and promises: src/tensor/kernels.ts.
#pragma once
#include <cstddef>
#include <cstdint>

#include "pool.h"

namespace drmas {

/// The upper half of the bits of a float.
using Bfloat16 = uint16_t;

struct AdamW {
  double learningRate, beta1, beta2, epsilon, weightDecay, step, gradientScale;
};

/// The heads of an attention layer. A row of qkv holds its queries, keys and values, head after head.
struct Heads {
  int heads, kvHeads, headDim;
  int stride() const { return (heads + 2 * kvHeads) * headDim; }  // floats of a row of qkv
  int keysAt() const { return heads * headDim; }                  // where a row's keys begin, after its queries
  int group() const { return heads / kvHeads; }                   // query heads that share a key-value head
};

struct KernelTable {
  const char* isa;
  size_t (*packedSize)(long inputs, long outputs);
  void (*pack)(Pool&, float* packed, const float* weight, long inputs, long outputs, bool transpose);
  void (*packBfloat16)(Pool&, Bfloat16* packed, const Bfloat16* weight, long inputs, long outputs, bool transpose);
  void (*linear)(Pool&, float* out, const float* x, const float* packed, long rows, long inputs, long outputs,
                 bool accumulate);
  void (*linearBfloat16)(Pool&, float* out, const float* x, const Bfloat16* packed, long rows, long inputs, long outputs,
                         bool accumulate);
  void (*linearWeightGradient)(Pool&, float* dWeight, const float* x, const float* dOut, long rows, long inputs,
                               long outputs);
  void (*rmsNorm)(Pool&, float* out, float* inverse, const float* x, const float* gain, long rows, long width,
                  float epsilon);
  void (*rmsNormBackward)(Pool&, float* dx, float* dGain, const float* dOut, const float* x, const float* gain,
                          const float* inverse, long rows, long width);
  void (*headNorm)(Pool&, float* qkv, float* queryInverse, float* keyInverse, const float* queryGain,
                   const float* keyGain, long rows, Heads, float epsilon);
  void (*headNormBackward)(Pool&, float* dQkv, float* dQueryGain, float* dKeyGain, const float* qkv,
                           const float* queryGain, const float* keyGain, const float* queryInverse,
                           const float* keyInverse, long rows, Heads);
  void (*rope)(Pool&, float* qkv, const float* table, const int32_t* positions, long rows, Heads, bool inverse);
  void (*attention)(Pool&, float* out, float* logSumExp, const float* qkv, const int32_t* starts, long sequences, Heads);
  void (*attentionBackward)(Pool&, float* dQkv, const float* dOut, const float* out, const float* logSumExp,
                            const float* qkv, const int32_t* starts, long sequences, Heads);
  size_t (*cacheSlotSize)(long capacity, Heads);
  void (*attentionCached)(Pool&, float* out, float* keys, float* values, const float* qkv, const int32_t* slots,
                          const int32_t* positions, long rows, long capacity, Heads);
  void (*cacheCopy)(Pool&, float* keys, float* values, long from, long to, long length, long capacity, Heads);
  void (*swiglu)(Pool&, float* out, const float* gateUp, long rows, long feedForward);
  void (*swigluBackward)(Pool&, float* dGateUp, const float* dOut, const float* gateUp, long rows, long feedForward);
  void (*embed)(Pool&, float* out, const float* table, const int32_t* tokens, long rows, long width);
  void (*embedBfloat16)(Pool&, float* out, const Bfloat16* table, const int32_t* tokens, long rows, long width);
  void (*embedBackward)(Pool&, float* dTable, const float* dOut, const int32_t* tokens, long rows, long width);
  void (*tokenLogprobs)(Pool&, float* logprobs, float* logSumExp, float* entropy, const float* logits,
                        const int32_t* targets, const float* inverseTemperature, long rows, long vocabSize);
  void (*tokenLogprobsBackward)(Pool&, float* logits, const float* dLogprobs, const float* logSumExp,
                                const int32_t* targets, const float* inverseTemperature, long rows, long vocabSize);
  void (*tokenEntropyBackward)(Pool&, float* logits, const float* dLogprobs, const float* dEntropy,
                               const float* logSumExp, const float* entropy, const int32_t* targets,
                               const float* inverseTemperature, long rows, long vocabSize);
  void (*sampleTokens)(Pool&, int32_t* tokens, float* logprobs, const float* logits, const float* uniforms,
                       const float* inverseTemperature, const int32_t* topK, const float* topP, long rows,
                       long vocabSize);
  double (*sumOfSquares)(Pool&, const float* x, long length);
  void (*add)(Pool&, float* out, const float* x, long length);
  void (*adamw)(Pool&, float* weights, const float* gradient, float* firstMoment, float* secondMoment, long length,
                const AdamW&);
  double (*fmaPeak)(Pool&, long tasks);
};

}  // namespace drmas
