// The Node-API face of the kernels: `create(threads, ...)` returns an object with the methods of `Kernels`
// (src/engine/tensor/kernels.ts). generated/addon.h checks the arguments of every call before a kernel touches memory.
#include <node_api.h>

#include <cstdint>
#include <initializer_list>
#include <string>

#include "arguments.h"
#include "generated/addon.h"
#include "processor.h"
#include "region.h"
#include "sets.h"

namespace drmas {

namespace {

/// The best table of this addon that this processor can run and `wanted` (empty: any) allows; null when there is none.
KernelTable (*pickTable(const std::string& wanted))() {
  const auto allowed = [&](const char* name) { return wanted.empty() || wanted == name; };
#if defined(__x86_64__)
  if (kSets.avx512 && allowed("avx512") && thisProcessor().avx512) return kSets.avx512;
  if (kSets.avx2 && allowed("avx2") && thisProcessor().avx2) return kSets.avx2;
#endif
  return allowed("portable") ? kSets.portable : nullptr;
}

constexpr const char* kWidened = "widened";
constexpr const char* kPairs = "avx512-bf16";
constexpr const char* kAmx = "amx";
constexpr const char* kEmulatedAmx = "amx-emulated";

/// What is fastest on operands in bfloat16 beside a table, whether this addon has it or not.
const char* fastestBfloat16Products(const KernelTable& table) {
#if defined(__x86_64__)
  if (table.isa == std::string("avx512")) return hasTiles() ? kAmx : prefersPairs() ? kPairs : kWidened;
#else
  static_cast<void>(table);
#endif
  return kWidened;
}

/// Puts the fastest kernels on operands in bfloat16 that this processor can run and `wanted` (empty: any) allows into a
/// table; false when `wanted` cannot be had. Emulated ones are slow: who does not want them does not get them.
bool pickBfloat16Products(KernelTable& table, const std::string& wanted) {
  const auto take = [&](const char* name, bool runs, bool (*kernels)(KernelTable&)) {
    if (!runs || !kernels || !kernels(table)) return false;
    table.bfloat16Products = name;
    return true;
  };
  if (wanted == kEmulatedAmx) return take(kEmulatedAmx, true, kSets.emulatedTiles);
  const std::string name = wanted.empty() ? fastestBfloat16Products(table) : wanted;
#if defined(__x86_64__)
  const bool wide = table.isa == std::string("avx512");
  if (name == kAmx && take(kAmx, wide && hasTiles(), kSets.tiles)) return true;
  if (name == kPairs && take(kPairs, wide && hasPairs(), kSets.pairs)) return true;
#endif
  return wanted.empty() || wanted == kWidened;
}

/// Whose cores blocks are made for: this processor's, unless somebody names others.
Cores pickCores(const std::string& wanted) {
  if (!wanted.empty()) return wanted == "amd" ? Cores::Amd : wanted == "older-amd" ? Cores::OlderAmd : Cores::Any;
#if defined(__x86_64__)
  if (thisProcessor().maker == Maker::Amd) return thisProcessor().avx512 ? Cores::Amd : Cores::OlderAmd;
#endif
  return Cores::Any;
}

/// Whether products of whole numbers take four numbers at a time: if this processor can, unless the caller asks for
/// unknown cores ("any"), as tests do.
bool pickFours(const std::string& wanted) { return wanted != "any" && hasFours(); }

/// The name of the set, by its bits: products in tiles have other bits than all others.
std::string nameOfSet(const KernelTable& table) {
  const bool inTiles = table.bfloat16Products == kAmx || table.bfloat16Products == kEmulatedAmx;
  return std::string(table.isa) + (inTiles ? "-amx" : "");
}

void dispose(Arguments& a) {
  delete a.instance().pool;
  a.instance().pool = nullptr;
}

/// The largest buffer of foreign memory that Node 20 accepts: for a larger one it calls `release` and fails.
constexpr size_t kMostExternal = size_t{1} << 32;
constexpr size_t kAlignment = 64;

/// Calls `new constructor(...values)` of a global of JavaScript; where that throws, clears the exception and returns
/// null.
napi_value construct(napi_env env, const char* constructor, std::initializer_list<napi_value> values) {
  napi_value global, function, object, exception;
  napi_get_global(env, &global);
  napi_get_named_property(env, global, constructor, &function);
  if (napi_new_instance(env, function, values.size(), values.begin(), &object) == napi_ok) return object;
  napi_get_and_clear_last_exception(env, &exception);
  return nullptr;
}

/// A zeroed typed array on memory of V8, whose size Node does not limit; the system provides pages as they are touched.
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

/// A zeroed typed array on a `Region`, which is freed with the array.
napi_value regionArray(napi_env env, napi_typedarray_type type, size_t length, size_t bytes) {
  Region* region = Region::zeroed(bytes);
  if (!region) return nullptr;
  napi_value buffer, array;
  const auto release = [](napi_env, void*, void* memory) { delete static_cast<Region*>(memory); };
  if (napi_create_external_arraybuffer(env, region->start(), bytes, release, region, &buffer) != napi_ok)
    return nullptr;
  return napi_create_typedarray(env, type, length, buffer, 0, &array) == napi_ok ? array : nullptr;
}

/// A zeroed typed array on memory aligned to 64 bytes at least.
template <napi_typedarray_type type, class Element>
napi_value allocateArray(napi_env env, napi_callback_info info) {
  Arguments a(env, info);
  const double length = a.size(0, "allocate(length)");
  if (!a.ok()) {
    napi_throw_range_error(env, "ERR_DRMAS_KERNELS", a.problem());
    return nullptr;
  }
  const char* constructor = type == napi_float32_array  ? "Float32Array"
                            : type == napi_uint16_array ? "Uint16Array"
                                                        : "Int32Array";
  const size_t bytes = static_cast<size_t>(length) * sizeof(Element);
  const napi_value array = bytes > kMostExternal ? largeArray(env, constructor, static_cast<size_t>(length), bytes)
                                                 : regionArray(env, type, static_cast<size_t>(length), bytes);
  if (!array) napi_throw_range_error(env, "ERR_DRMAS_MEMORY", "out of memory");
  return array;
}

/// An argument that is a short string; empty if it is none.
std::string textOf(napi_env env, napi_value value) {
  char text[32] = {0};
  size_t length = 0;
  napi_get_value_string_utf8(env, value, text, sizeof text, &length);
  return text;
}

/// create(threads: number, isa?: string, bfloat16Products?: string, cores?: string): Kernels, or undefined if this
/// processor cannot run the wanted sets.
napi_value create(napi_env env, napi_callback_info info) {
  napi_value values[4];
  size_t count = 4;
  double threads = 1;
  napi_get_cb_info(env, info, &count, values, nullptr, nullptr);
  if (count < 1 || napi_get_value_double(env, values[0], &threads) != napi_ok || !(threads >= 1 && threads <= 1024)) {
    napi_throw_range_error(env, "ERR_DRMAS_KERNELS", "threads must be a number from 1 to 1024");
    return nullptr;
  }
  const auto picked = pickTable(count > 1 ? textOf(env, values[1]) : "");
  if (!picked) return nullptr;
  KernelTable table = picked();
  if (!pickBfloat16Products(table, count > 2 ? textOf(env, values[2]) : "")) return nullptr;

  const std::string cores = count > 3 ? textOf(env, values[3]) : "";
  auto* instance = new Instance{table, new Pool(static_cast<int>(threads), pickCores(cores), pickFours(cores))};
  napi_value object, value;
  napi_create_object(env, &object);
  const auto addMethod = [&](const Method& m) {
    napi_create_function(env, m.name, NAPI_AUTO_LENGTH, m.callback, instance, &value);
    napi_set_named_property(env, object, m.name, value);
  };
  addMethod({"allocate", allocateArray<napi_float32_array, float>});
  addMethod({"allocateBfloat16", allocateArray<napi_uint16_array, Bfloat16>});
  addMethod({"allocateIntegers", allocateArray<napi_int32_array, int32_t>});
  addMethod({"dispose", method<dispose>});
  for (const Method& m : kKernelMethods) addMethod(m);
  napi_create_string_utf8(env, "native", NAPI_AUTO_LENGTH, &value);
  napi_set_named_property(env, object, "name", value);
  napi_create_string_utf8(env, nameOfSet(table).c_str(), NAPI_AUTO_LENGTH, &value);
  napi_set_named_property(env, object, "isa", value);
  napi_create_string_utf8(env, table.bfloat16Products, NAPI_AUTO_LENGTH, &value);
  napi_set_named_property(env, object, "bfloat16Products", value);
  napi_create_string_utf8(env, fastestBfloat16Products(table), NAPI_AUTO_LENGTH, &value);
  napi_set_named_property(env, object, "fastestBfloat16Products", value);
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
