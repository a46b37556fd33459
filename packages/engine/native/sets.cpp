// Lists the sets that are linked into an addon. Each has a flag -DDRMAS_HAVE_<name>, so that addon.cpp is the same for
// all addons.
#include "sets.h"

namespace drmas {

#ifdef DRMAS_HAVE_avx512
KernelTable table_avx512();
#define DRMAS_AVX512 table_avx512
#else
#define DRMAS_AVX512 nullptr
#endif
#ifdef DRMAS_HAVE_avx2
KernelTable table_avx2();
#define DRMAS_AVX2 table_avx2
#else
#define DRMAS_AVX2 nullptr
#endif
#ifdef DRMAS_HAVE_portable
KernelTable table_portable();
#define DRMAS_PORTABLE table_portable
#else
#define DRMAS_PORTABLE nullptr
#endif
#ifdef DRMAS_HAVE_amx
bool bfloat16_amx(KernelTable&);
#define DRMAS_TILES bfloat16_amx
#else
#define DRMAS_TILES nullptr
#endif
#ifdef DRMAS_HAVE_avx512bf16
bool bfloat16_avx512bf16(KernelTable&);
#define DRMAS_PAIRS bfloat16_avx512bf16
#else
#define DRMAS_PAIRS nullptr
#endif
#ifdef DRMAS_HAVE_amx_emulated
bool bfloat16_amx_emulated(KernelTable&);
#define DRMAS_EMULATED bfloat16_amx_emulated
#else
#define DRMAS_EMULATED nullptr
#endif

const Sets kSets = {DRMAS_AVX512, DRMAS_AVX2, DRMAS_PORTABLE, DRMAS_TILES, DRMAS_PAIRS, DRMAS_EMULATED};

}  // namespace drmas
