// What is compiled once for each target: its declarations, its name, and the way to find it.
#pragma once

#define DM_TEXT(x) #x
#define DM_NAME(x) DM_TEXT(x)

#define DM_ON_TARGET(target, Type, name) \
    namespace target {                   \
    extern const Type name;              \
    }

// `extern const Type name` in the namespace of every target.
#define DM_ON_EVERY_TARGET(Type, name) \
    DM_ON_TARGET(scalar, Type, name)   \
    DM_ON_TARGET(v2, Type, name)       \
    DM_ON_TARGET(v3, Type, name)       \
    DM_ON_TARGET(v4, Type, name)       \
    DM_ON_TARGET(v4_vbmi, Type, name)  \
    DM_ON_TARGET(neon, Type, name)     \
    DM_ON_TARGET(simd128, Type, name)

// Addresses of `name` on the targets that are built for this kind of processor.
#if defined(__x86_64__)
#define DM_OF_EVERY_TARGET(name) {&scalar::name, &v2::name, &v3::name, &v4::name, &v4_vbmi::name}
#elif defined(__ARM_NEON)
#define DM_OF_EVERY_TARGET(name) {&scalar::name, &neon::name}
#elif defined(__wasm_simd128__)
#define DM_OF_EVERY_TARGET(name) {&scalar::name, &simd128::name}
#else
#define DM_OF_EVERY_TARGET(name) {&scalar::name}
#endif
