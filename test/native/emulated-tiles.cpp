// The products in bfloat16 of AMX, emulated, for every-kernel.cpp: native/bfloat16.cpp under its own name of a set,
// whichever set the other sources are compiled for.
#undef DRMAS_ISA
#define DRMAS_ISA amx_emulated
#define DRMAS_EMULATED_TILES
#include "../../packages/engine/native/bfloat16.cpp"
