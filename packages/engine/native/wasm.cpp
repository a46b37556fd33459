// The WebAssembly face of the kernels, beside addon.cpp: one exported function a kernel. src/engine/tensor/wasm checks
// the arguments and passes addresses. `npm run generate -- wasm` compiles this file alone, for a 128-bit vector set,
// without an operating system or a C++ library: wasm/ has the few parts of the standard library that the kernels use.
#include "generated/blocks.h"
#include "generated/kernels.h"
#include "generated/products.h"

#define DRMAS_EXPORT(name) extern "C" __attribute__((export_name(#name)))

namespace drmas {
namespace {

namespace kernels = DRMAS_ISA;

/// Initialised at compile time: no constructor runs when the module is instantiated.
[[clang::require_constant_initialization]] Pool pool;

// The threads: one calls the kernels, every other one is in `work` (src/engine/tensor/wasm/thread-work.ts).
DRMAS_EXPORT(setThreads) void setThreads(int threads) { pool.setThreads(threads); }
DRMAS_EXPORT(work) void work() { pool.work(); }
DRMAS_EXPORT(leave) void leave() { pool.leave(); }
DRMAS_EXPORT(abandon) void abandon() { pool.abandon(); }
DRMAS_EXPORT(stop) void stop() { pool.stop(); }

#include "generated/wasm-exports.h"

}  // namespace
}  // namespace drmas
