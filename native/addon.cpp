// The Node-API face of the kernels: `create(threads, isa?)` returns an object with the methods of `Kernels`
// (src/tensor/kernels.ts). Every call checks the kinds and lengths of its buffers before a kernel touches memory.
#include <node_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>
#include <string>
#include <type_traits>

#include "arguments.h"
#include "region.h"
#include "table.h"

namespace drmas {

extern const KernelTable table_portable;
#ifdef DRMAS_HAVE_AVX2
extern const KernelTable table_avx2;
#endif
#ifdef DRMAS_HAVE_AVX512
extern const KernelTable table_avx512;
#endif

namespace {

/// The best table that this processor can run and `wanted` (empty: any) allows; null when `wanted` cannot be had.
const KernelTable* pickTable(const std::string& wanted) {
  const auto allowed = [&](const char* name) { return wanted.empty() || wanted == name; };
#ifdef DRMAS_HAVE_AVX512
  if (allowed("avx512") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
    return &table_avx512;
#endif
#ifdef DRMAS_HAVE_AVX2
  if (allowed("avx2") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &table_avx2;
#endif
  return allowed("portable") ? &table_portable : nullptr;
}

/// Wraps body(arguments) as a callback; a double becomes the JavaScript result.
template <auto body>
napi_value method(napi_env env, napi_callback_info info) {
  Arguments a(env, info);
  napi_value value = nullptr;
  if constexpr (std::is_void_v<decltype(body(a))>) {
    if (a.ok()) body(a);
  } else {
    const double result = a.ok() ? body(a) : 0;
    napi_create_double(env, result, &value);
  }
  if (!a.ok()) {
    napi_throw_range_error(env, "ERR_DRMAS_KERNELS", a.problem());
    return nullptr;
  }
  return value;
}

double packedSize(Arguments& a) {
  const long inputs = a.size(0), outputs = a.size(1);
  return a.ok() ? static_cast<double>(a.instance().table->packedSize(inputs, outputs)) : 0;
}

void pack(Arguments& a) {
  const long inputs = a.size(2), outputs = a.size(3);
  const bool transpose = a.flag(4);
  const Instance& k = a.instance();
  const Weights packed = a.weights(0, static_cast<double>(k.table->packedSize(inputs, outputs)));
  const double size = double(inputs) * outputs;
  if (packed.isBfloat16) {
    const Bfloat16* weight = a.bfloat16(1, size);
    if (a.ok()) k.table->packBfloat16(*k.pool, packed.bfloat16(), weight, inputs, outputs, transpose);
  } else {
    const float* weight = a.floats(1, size);
    if (a.ok()) k.table->pack(*k.pool, packed.floats(), weight, inputs, outputs, transpose);
  }
}

void linear(Arguments& a) {
  const long rows = a.size(3), inputs = a.size(4), outputs = a.size(5);
  const bool accumulate = a.flag(6);
  const Instance& k = a.instance();
  float* out = a.floats(0, double(rows) * outputs);
  const float* x = a.floats(1, double(rows) * inputs);
  const Weights packed = a.weights(2, static_cast<double>(k.table->packedSize(inputs, outputs)));
  if (!a.ok() || rows == 0 || inputs == 0) return;
  if (packed.isBfloat16)
    k.table->linearBfloat16(*k.pool, out, x, packed.bfloat16(), rows, inputs, outputs, accumulate);
  else
    k.table->linear(*k.pool, out, x, packed.floats(), rows, inputs, outputs, accumulate);
}

void linearWeightGradient(Arguments& a) {
  const long rows = a.size(3), inputs = a.size(4), outputs = a.size(5);
  const Instance& k = a.instance();
  float* dWeight = a.floats(0, double(inputs) * outputs);
  const float* x = a.floats(1, double(rows) * inputs);
  const float* dOut = a.floats(2, double(rows) * outputs);
  if (a.ok() && rows > 0) k.table->linearWeightGradient(*k.pool, dWeight, x, dOut, rows, inputs, outputs);
}

void rmsNorm(Arguments& a) {
  const long rows = a.size(4), width = a.size(5);
  const double epsilon = a.number(6);
  const Instance& k = a.instance();
  float* out = a.floats(0, double(rows) * width);
  float* inverse = a.floats(1, double(rows));
  const float* x = a.floats(2, double(rows) * width);
  const float* gain = a.floats(3, double(width));
  if (a.ok()) k.table->rmsNorm(*k.pool, out, inverse, x, gain, rows, width, static_cast<float>(epsilon));
}

void rmsNormBackward(Arguments& a) {
  const long rows = a.size(6), width = a.size(7);
  const Instance& k = a.instance();
  float* dx = a.floats(0, double(rows) * width);
  float* dGain = a.floats(1, double(width));
  const float* dOut = a.floats(2, double(rows) * width);
  const float* x = a.floats(3, double(rows) * width);
  const float* gain = a.floats(4, double(width));
  const float* inverse = a.floats(5, double(rows));
  if (a.ok()) k.table->rmsNormBackward(*k.pool, dx, dGain, dOut, x, gain, inverse, rows, width);
}

/// One more than the largest of the first `count` indices.
double rowsIndexed(const Arguments& a, const int32_t* indices, long count) {
  long most = 0;
  for (long r = 0; a.ok() && r < count; r++) most = std::max(most, long{indices[r]} + 1);
  return double(most);
}

void headNorm(Arguments& a) {
  const long rows = a.size(5);
  const Heads h = a.heads(6);
  const double epsilon = a.number(9);
  const Instance& k = a.instance();
  float* qkv = a.floats(0, double(rows) * h.stride());
  float* queryInverse = a.floats(1, double(rows) * h.heads);
  float* keyInverse = a.floats(2, double(rows) * h.kvHeads);
  const float* queryGain = a.floats(3, h.headDim);
  const float* keyGain = a.floats(4, h.headDim);
  if (a.ok())
    k.table->headNorm(*k.pool, qkv, queryInverse, keyInverse, queryGain, keyGain, rows, h, static_cast<float>(epsilon));
}

void headNormBackward(Arguments& a) {
  const long rows = a.size(8);
  const Heads h = a.heads(9);
  const Instance& k = a.instance();
  float* dQkv = a.floats(0, double(rows) * h.stride());
  float* dQueryGain = a.floats(1, h.headDim);
  float* dKeyGain = a.floats(2, h.headDim);
  const float* qkv = a.floats(3, double(rows) * h.stride());
  const float* queryGain = a.floats(4, h.headDim);
  const float* keyGain = a.floats(5, h.headDim);
  const float* queryInverse = a.floats(6, double(rows) * h.heads);
  const float* keyInverse = a.floats(7, double(rows) * h.kvHeads);
  if (a.ok())
    k.table->headNormBackward(*k.pool, dQkv, dQueryGain, dKeyGain, qkv, queryGain, keyGain, queryInverse, keyInverse,
                              rows, h);
}

void rope(Arguments& a) {
  const long rows = a.size(3);
  const Heads h = a.heads(4);
  const bool inverse = a.flag(7);
  const Instance& k = a.instance();
  float* qkv = a.floats(0, double(rows) * h.stride());
  const int32_t* positions = a.indices(2, rows);
  const float* table = a.floats(1, rowsIndexed(a, positions, rows) * h.headDim);
  if (a.ok()) k.table->rope(*k.pool, qkv, table, positions, rows, h, inverse);
}

void attention(Arguments& a) {
  const long sequences = a.size(4);
  const Heads h = a.heads(5);
  const Instance& k = a.instance();
  const int32_t* starts = a.integers(3, double(sequences) + 1);
  const double rows = static_cast<double>(a.rowsOf(starts, sequences, 3));
  float* out = a.floats(0, rows * h.heads * h.headDim);
  float* logSumExp = a.floats(1, rows * h.heads);
  const float* qkv = a.floats(2, rows * h.stride());
  if (a.ok()) k.table->attention(*k.pool, out, logSumExp, qkv, starts, sequences, h);
}

void attentionBackward(Arguments& a) {
  const long sequences = a.size(6);
  const Heads h = a.heads(7);
  const Instance& k = a.instance();
  const int32_t* starts = a.integers(5, double(sequences) + 1);
  const double rows = static_cast<double>(a.rowsOf(starts, sequences, 5));
  float* dQkv = a.floats(0, rows * h.stride());
  const float* dOut = a.floats(1, rows * h.heads * h.headDim);
  const float* out = a.floats(2, rows * h.heads * h.headDim);
  const float* logSumExp = a.floats(3, rows * h.heads);
  const float* qkv = a.floats(4, rows * h.stride());
  if (a.ok()) k.table->attentionBackward(*k.pool, dQkv, dOut, out, logSumExp, qkv, starts, sequences, h);
}

double cacheSlotSize(Arguments& a) {
  const long capacity = a.size(0);
  const Heads h = a.heads(1);
  return a.ok() ? static_cast<double>(a.instance().table->cacheSlotSize(capacity, h)) : 0;
}

void attentionCached(Arguments& a) {
  const long rows = a.size(6), capacity = a.size(7);
  const Heads h = a.heads(8);
  const Instance& k = a.instance();
  const double slot = a.ok() ? static_cast<double>(k.table->cacheSlotSize(capacity, h)) : 0;
  float* out = a.floats(0, double(rows) * h.heads * h.headDim);
  const float* qkv = a.floats(3, double(rows) * h.stride());
  const int32_t* slots = a.indices(4, rows);
  const double room = rowsIndexed(a, slots, rows) * slot;
  float* keys = a.floats(1, room);
  float* values = a.floats(2, room);
  const int32_t* positions = a.indices(5, rows, double(capacity));
  if (a.ok()) k.table->attentionCached(*k.pool, out, keys, values, qkv, slots, positions, rows, capacity, h);
}

void cacheCopy(Arguments& a) {
  const long from = a.size(2), to = a.size(3), length = a.size(4), capacity = a.size(5);
  const Heads h = a.heads(6);
  const Instance& k = a.instance();
  const long last = from > to ? from : to;
  const double slot = a.ok() ? static_cast<double>(k.table->cacheSlotSize(capacity, h)) : 0;
  // A length beyond the slot is refused by asking for a buffer that cannot exist.
  const double needed = length > capacity ? 1e300 : (double(last) + 1) * slot;
  float* keys = a.floats(0, needed);
  float* values = a.floats(1, needed);
  if (a.ok()) k.table->cacheCopy(*k.pool, keys, values, from, to, length, capacity, h);
}

void swiglu(Arguments& a) {
  const long rows = a.size(2), feedForward = a.size(3);
  const Instance& k = a.instance();
  float* out = a.floats(0, double(rows) * feedForward);
  const float* gateUp = a.floats(1, double(rows) * 2 * feedForward);
  if (a.ok()) k.table->swiglu(*k.pool, out, gateUp, rows, feedForward);
}

void swigluBackward(Arguments& a) {
  const long rows = a.size(3), feedForward = a.size(4);
  const Instance& k = a.instance();
  float* dGateUp = a.floats(0, double(rows) * 2 * feedForward);
  const float* dOut = a.floats(1, double(rows) * feedForward);
  const float* gateUp = a.floats(2, double(rows) * 2 * feedForward);
  if (a.ok()) k.table->swigluBackward(*k.pool, dGateUp, dOut, gateUp, rows, feedForward);
}

void embed(Arguments& a) {
  const long rows = a.size(3), width = a.size(4);
  const Instance& k = a.instance();
  float* out = a.floats(0, double(rows) * width);
  const int32_t* tokens = a.indices(2, rows);
  const Weights table = a.weights(1, rowsIndexed(a, tokens, rows) * width);
  if (!a.ok()) return;
  if (table.isBfloat16)
    k.table->embedBfloat16(*k.pool, out, table.bfloat16(), tokens, rows, width);
  else
    k.table->embed(*k.pool, out, table.floats(), tokens, rows, width);
}

void embedBackward(Arguments& a) {
  const long rows = a.size(3), width = a.size(4);
  const Instance& k = a.instance();
  const float* dOut = a.floats(1, double(rows) * width);
  const int32_t* tokens = a.indices(2, rows);
  float* dTable = a.floats(0, rowsIndexed(a, tokens, rows) * width);
  if (a.ok()) k.table->embedBackward(*k.pool, dTable, dOut, tokens, rows, width);
}

void tokenLogprobs(Arguments& a) {
  const long rows = a.size(6), vocabSize = a.size(7);
  const Instance& k = a.instance();
  float* logprobs = a.floats(0, double(rows));
  float* logSumExp = a.floats(1, double(rows));
  float* entropy = a.floats(2, double(rows));
  const float* logits = a.floats(3, double(rows) * vocabSize);
  const int32_t* targets = a.indices(4, rows, double(vocabSize));
  const float* inverseTemperature = a.floats(5, double(rows));
  if (a.ok())
    k.table->tokenLogprobs(*k.pool, logprobs, logSumExp, entropy, logits, targets, inverseTemperature, rows, vocabSize);
}

void tokenLogprobsBackward(Arguments& a) {
  const long rows = a.size(5), vocabSize = a.size(6);
  const Instance& k = a.instance();
  float* logits = a.floats(0, double(rows) * vocabSize);
  const float* dLogprobs = a.floats(1, double(rows));
  const float* logSumExp = a.floats(2, double(rows));
  const int32_t* targets = a.indices(3, rows, double(vocabSize));
  const float* inverseTemperature = a.floats(4, double(rows));
  if (a.ok())
    k.table->tokenLogprobsBackward(*k.pool, logits, dLogprobs, logSumExp, targets, inverseTemperature, rows, vocabSize);
}

void tokenEntropyBackward(Arguments& a) {
  const long rows = a.size(7), vocabSize = a.size(8);
  const Instance& k = a.instance();
  float* logits = a.floats(0, double(rows) * vocabSize);
  const float* dLogprobs = a.floats(1, double(rows));
  const float* dEntropy = a.floats(2, double(rows));
  const float* logSumExp = a.floats(3, double(rows));
  const float* entropy = a.floats(4, double(rows));
  const int32_t* targets = a.indices(5, rows, double(vocabSize));
  const float* inverseTemperature = a.floats(6, double(rows));
  if (a.ok())
    k.table->tokenEntropyBackward(*k.pool, logits, dLogprobs, dEntropy, logSumExp, entropy, targets,
                                  inverseTemperature, rows, vocabSize);
}

void sampleTokens(Arguments& a) {
  const long rows = a.size(7), vocabSize = a.size(8);
  const Instance& k = a.instance();
  int32_t* tokens = a.integers(0, double(rows));
  float* logprobs = a.floats(1, double(rows));
  const float* logits = a.floats(2, double(rows) * vocabSize);
  const float* uniforms = a.floats(3, double(rows));
  const float* inverseTemperature = a.floats(4, double(rows));
  const int32_t* topK = a.integers(5, double(rows));
  const float* topP = a.floats(6, double(rows));
  if (a.ok())
    k.table->sampleTokens(*k.pool, tokens, logprobs, logits, uniforms, inverseTemperature, topK, topP, rows, vocabSize);
}

double sumOfSquares(Arguments& a) {
  const long length = a.size(1);
  const float* x = a.floats(0, double(length));
  return a.ok() ? a.instance().table->sumOfSquares(*a.instance().pool, x, length) : 0;
}

void add(Arguments& a) {
  const long length = a.size(2);
  float* out = a.floats(0, double(length));
  const float* x = a.floats(1, double(length));
  if (a.ok()) a.instance().table->add(*a.instance().pool, out, x, length);
}

void adamw(Arguments& a) {
  const long length = a.size(4);
  const AdamW settings{a.number(5), a.number(6), a.number(7), a.number(8), a.number(9), a.number(10), a.number(11)};
  float* weights = a.floats(0, double(length));
  const float* gradient = a.floats(1, double(length));
  float* firstMoment = a.floats(2, double(length));
  float* secondMoment = a.floats(3, double(length));
  if (a.ok())
    a.instance().table->adamw(*a.instance().pool, weights, gradient, firstMoment, secondMoment, length, settings);
}

double fmaPeak(Arguments& a) {
  const long tasks = a.size(0);
  return a.ok() ? a.instance().table->fmaPeak(*a.instance().pool, tasks) : 0;
}

void dispose(Arguments& a) {
  delete a.instance().pool;
  a.instance().pool = nullptr;
}

/// What Node 20 gives of memory that is not V8's: beyond it, it calls `release` and fails.
constexpr size_t kMostExternal = size_t{1} << 32;
constexpr size_t kAlignment = 64;

/// new Constructor(...values) of JavaScript's own; null where that throws, which is taken back.
napi_value construct(napi_env env, const char* constructor, std::initializer_list<napi_value> values) {
  napi_value global, function, object, exception;
  napi_get_global(env, &global);
  napi_get_named_property(env, global, constructor, &function);
  if (napi_new_instance(env, function, values.size(), values.begin(), &object) == napi_ok) return object;
  napi_get_and_clear_last_exception(env, &exception);
  return nullptr;
}

/// A typed array on V8's own memory, which Node limits nowhere: it is zeroed, and not touched before it is used.
napi_value largeArray(napi_env env, const char* constructor, size_t length, size_t bytes) {
  napi_value size, offset, count;
  napi_create_double(env, static_cast<double>(bytes + kAlignment), &size);
  const napi_value buffer = construct(env, "ArrayBuffer", {size});
  if (!buffer) return nullptr;
  void* start = nullptr;
  napi_get_arraybuffer_info(env, buffer, &start, nullptr);
  const size_t beyond = reinterpret_cast<uintptr_t>(start) % kAlignment;
  napi_create_double(env, static_cast<double>((kAlignment - beyond) % kAlignment), &offset);
  napi_create_double(env, static_cast<double>(length), &count);
  return construct(env, constructor, {buffer, offset, count});
}

/// The same on a region of ours.
napi_value ownArray(napi_env env, napi_typedarray_type type, size_t length, size_t bytes) {
  Region* region = Region::zeroed(bytes);
  if (!region) return nullptr;
  napi_value buffer, array;
  const auto release = [](napi_env, void*, void* own) { delete static_cast<Region*>(own); };
  if (napi_create_external_arraybuffer(env, region->start(), bytes, release, region, &buffer) != napi_ok) return nullptr;
  return napi_create_typedarray(env, type, length, buffer, 0, &array) == napi_ok ? array : nullptr;
}

/// A zeroed typed array on memory aligned to 64 bytes at least.
template <napi_typedarray_type type, class Element>
napi_value allocateArray(napi_env env, napi_callback_info info) {
  Arguments a(env, info);
  const long length = a.size(0);
  if (!a.ok()) {
    napi_throw_range_error(env, "ERR_DRMAS_KERNELS", a.problem());
    return nullptr;
  }
  const char* constructor = type == napi_float32_array  ? "Float32Array"
                            : type == napi_uint16_array ? "Uint16Array"
                                                        : "Int32Array";
  const size_t bytes = static_cast<size_t>(length) * sizeof(Element);
  const napi_value array = bytes > kMostExternal ? largeArray(env, constructor, static_cast<size_t>(length), bytes)
                                                 : ownArray(env, type, static_cast<size_t>(length), bytes);
  if (!array) napi_throw_range_error(env, "ERR_DRMAS_MEMORY", "out of memory");
  return array;
}

/// create(threads: number, isa?: string): Kernels, or undefined when this processor cannot run the wanted set.
napi_value create(napi_env env, napi_callback_info info) {
  napi_value values[2];
  size_t count = 2;
  double threads = 1;
  napi_get_cb_info(env, info, &count, values, nullptr, nullptr);
  if (count < 1 || napi_get_value_double(env, values[0], &threads) != napi_ok || !(threads >= 1 && threads <= 1024)) {
    napi_throw_range_error(env, "ERR_DRMAS_KERNELS", "threads must be a number from 1 to 1024");
    return nullptr;
  }
  char isa[32] = {0};
  size_t length = 0;
  if (count > 1) napi_get_value_string_utf8(env, values[1], isa, sizeof isa, &length);
  const KernelTable* table = pickTable(isa);
  if (!table) return nullptr;

  auto* instance = new Instance{table, new Pool(static_cast<int>(threads))};
  napi_value object, value;
  napi_create_object(env, &object);
  const struct {
    const char* name;
    napi_callback callback;
  } methods[] = {
      {"allocate", allocateArray<napi_float32_array, float>},
      {"allocateBfloat16", allocateArray<napi_uint16_array, Bfloat16>},
      {"allocateIntegers", allocateArray<napi_int32_array, int32_t>},
      {"dispose", method<dispose>},
      {"packedSize", method<packedSize>},
      {"pack", method<pack>},
      {"linear", method<linear>},
      {"linearWeightGradient", method<linearWeightGradient>},
      {"rmsNorm", method<rmsNorm>},
      {"rmsNormBackward", method<rmsNormBackward>},
      {"headNorm", method<headNorm>},
      {"headNormBackward", method<headNormBackward>},
      {"rope", method<rope>},
      {"attention", method<attention>},
      {"attentionBackward", method<attentionBackward>},
      {"cacheSlotSize", method<cacheSlotSize>},
      {"attentionCached", method<attentionCached>},
      {"cacheCopy", method<cacheCopy>},
      {"swiglu", method<swiglu>},
      {"swigluBackward", method<swigluBackward>},
      {"embed", method<embed>},
      {"embedBackward", method<embedBackward>},
      {"tokenLogprobs", method<tokenLogprobs>},
      {"tokenLogprobsBackward", method<tokenLogprobsBackward>},
      {"tokenEntropyBackward", method<tokenEntropyBackward>},
      {"sampleTokens", method<sampleTokens>},
      {"sumOfSquares", method<sumOfSquares>},
      {"add", method<add>},
      {"adamw", method<adamw>},
      {"fmaPeak", method<fmaPeak>},
  };
  for (const auto& m : methods) {
    napi_create_function(env, m.name, NAPI_AUTO_LENGTH, m.callback, instance, &value);
    napi_set_named_property(env, object, m.name, value);
  }
  napi_create_string_utf8(env, "native", NAPI_AUTO_LENGTH, &value);
  napi_set_named_property(env, object, "name", value);
  napi_create_string_utf8(env, table->isa, NAPI_AUTO_LENGTH, &value);
  napi_set_named_property(env, object, "isa", value);
  napi_create_double(env, threads, &value);
  napi_set_named_property(env, object, "threads", value);
  // Methods may be detached from the object, so the instance lives as long as the environment.
  napi_add_env_cleanup_hook(env, [](void* data) { delete static_cast<Instance*>(data); }, instance);
  return object;
}

}  // namespace
}  // namespace drmas

NAPI_MODULE_INIT() {
  napi_value function;
  napi_create_function(env, "create", NAPI_AUTO_LENGTH, drmas::create, nullptr, &function);
  napi_set_named_property(env, exports, "create", function);
  return exports;
}
