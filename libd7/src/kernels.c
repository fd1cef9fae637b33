/* Which variant runs. The first call asks the environment and the processor; the answer is kept in one atomic pointer,
 * and threads that come first together find the same one. */
#include "kernels.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static bool always(void) {
    return true;
}

#define ENCODERS(variant)                                                                                    \
    .encode_int16 = d7__##variant##_encode_int16, .encode_uint16 = d7__##variant##_encode_uint16,            \
    .encode_32 = d7__##variant##_encode_32, .encode_64 = d7__##variant##_encode_64
#define DECODERS(variant)                                                                                    \
    .decode_16 = d7__##variant##_decode_16, .decode_32 = d7__##variant##_decode_32,                          \
    .decode_64 = d7__##variant##_decode_64

static const d7__kernels scalar = {
    .name = "scalar",
    .usable = always,
    .fast = always,
    ENCODERS(scalar),
    DECODERS(scalar),
    .count = d7__scalar_count,
};

#if D7__HAVE_AVX2
static bool has_avx2(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

/* Before Zen 3, AMD's processors do pext and pdep bit by bit: slower than portable code. */
static bool has_fast_pext(void) {
    __builtin_cpu_init();
    return !__builtin_cpu_is("znver1") && !__builtin_cpu_is("znver2") && !__builtin_cpu_is("bdver4");
}

/* The encoders need no pext. */
static const d7__kernels avx2_encode = {
    .name = "avx2-encode",
    .usable = has_avx2,
    .fast = always,
    ENCODERS(avx2),
    DECODERS(scalar),
    .count = d7__avx2_count,
};

static const d7__kernels avx2 = {
    .name = "avx2",
    .usable = has_avx2,
    .fast = has_fast_pext,
    ENCODERS(avx2),
    DECODERS(avx2),
    .count = d7__avx2_count,
};
#endif

#if D7__HAVE_AVX512
/* Also asks whether the operating system saves the registers. */
static bool has_avx512(void) {
#if defined(D7__AVX512_EMULATED)
    return true;
#else
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
#endif
}

static bool never(void) {
    return false;
}

/* Only run by whoever asks for it by name: its checks have passed with the intrinsics in plain C, on no processor yet. */
static const d7__kernels avx512 = {
    .name = "avx512",
    .usable = has_avx512,
    .fast = never,
    ENCODERS(avx512),
    DECODERS(avx512),
    .count = d7__avx512_count,
};
#endif

#if D7__HAVE_NEON
static const d7__kernels neon = {
    .name = "neon",
    .usable = always,
    .fast = always,
    ENCODERS(neon),
    .decode_16 = d7__neon_decode_16,
    .decode_32 = d7__scalar_decode_32,
    .decode_64 = d7__scalar_decode_64,
    .count = d7__neon_count,
};
#endif

const d7__kernels *const d7__kernels_all[] = {
    &scalar,
#if D7__HAVE_AVX2
    &avx2_encode, &avx2,
#endif
#if D7__HAVE_AVX512
    &avx512,
#endif
#if D7__HAVE_NEON
    &neon,
#endif
    NULL,
};

static const d7__kernels *choose(const char *name) {
    const d7__kernels *best = &scalar;
    for (size_t i = 0; d7__kernels_all[i]; i++) {
        const d7__kernels *k = d7__kernels_all[i];
        if (!k->usable())
            continue;
        if (name && strcmp(k->name, name) == 0)
            return k;
        if (k->fast())
            best = k;
    }
    return best;
}

const d7__kernels *d7__kernels_best(void) {
    static _Atomic(const d7__kernels *) chosen;
    const d7__kernels *k = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (!k) {
        k = choose(secure_getenv("D7_KERNEL"));
        atomic_store_explicit(&chosen, k, memory_order_relaxed);
    }
    return k;
}
