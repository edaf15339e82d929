// Codes from planes, a column's codes together, to rows, a row's codes together, for records.
//
// Included by kernels.cpp, once for each target. Sixteen by sixteen: zipping the first half of the
// vectors with the second, four times over, turns them about.
#pragma once

namespace {

#if defined(DM_HAS_RECORDS)

#if defined(__ARM_NEON)
using Bytes = uint8x16_t;
inline Bytes load_bytes(const void* from) { return vld1q_u8(static_cast<const uint8_t*>(from)); }
inline void store_bytes(void* to, Bytes x) { vst1q_u8(static_cast<uint8_t*>(to), x); }
inline Bytes zip_low(Bytes a, Bytes b) { return vzip1q_u8(a, b); }
inline Bytes zip_high(Bytes a, Bytes b) { return vzip2q_u8(a, b); }
inline Bytes all_bytes(uint8_t x) { return vdupq_n_u8(x); }
inline Bytes either(Bytes a, Bytes b) { return vorrq_u8(a, b); }
inline Bytes differ(Bytes a, Bytes b) { return vmvnq_u8(vceqq_u8(a, b)); }
inline bool has_any(Bytes x) { return vmaxvq_u8(x) != 0; }
inline Bytes turn_top(Bytes x) { return veorq_u8(x, vdupq_n_u8(128)); }
// The low, or the high, bytes of 16 words.
inline Bytes even_bytes(Bytes a, Bytes b) { return vuzp1q_u8(a, b); }
inline Bytes odd_bytes(Bytes a, Bytes b) { return vuzp2q_u8(a, b); }
#else
using Bytes = __m128i;
inline Bytes load_bytes(const void* from) {
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
}
inline void store_bytes(void* to, Bytes x) { _mm_storeu_si128(static_cast<__m128i*>(to), x); }
inline Bytes zip_low(Bytes a, Bytes b) { return _mm_unpacklo_epi8(a, b); }
inline Bytes zip_high(Bytes a, Bytes b) { return _mm_unpackhi_epi8(a, b); }
inline Bytes all_bytes(uint8_t x) { return _mm_set1_epi8(static_cast<char>(x)); }
inline Bytes either(Bytes a, Bytes b) { return _mm_or_si128(a, b); }
inline Bytes differ(Bytes a, Bytes b) {
    return _mm_xor_si128(_mm_cmpeq_epi8(a, b), _mm_set1_epi8(-1));
}
inline bool has_any(Bytes x) {
    return _mm_movemask_epi8(_mm_cmpeq_epi8(x, _mm_setzero_si128())) != 65535;
}
inline Bytes turn_top(Bytes x) { return _mm_xor_si128(x, _mm_set1_epi8(-128)); }
inline Bytes even_bytes(Bytes a, Bytes b) {
    const __m128i low = _mm_set1_epi16(255);
    return _mm_packus_epi16(_mm_and_si128(a, low), _mm_and_si128(b, low));
}
inline Bytes odd_bytes(Bytes a, Bytes b) {
    return _mm_packus_epi16(_mm_srli_epi16(a, 8), _mm_srli_epi16(b, 8));
}
#endif

inline void turn_about(Bytes* x) {
    Bytes y[16];
    for (int round = 0; round < 2; ++round) {
        for (int i = 0; i < 8; ++i) {
            y[2 * i] = zip_low(x[i], x[i + 8]);
            y[2 * i + 1] = zip_high(x[i], x[i + 8]);
        }
        for (int i = 0; i < 8; ++i) {
            x[2 * i] = zip_low(y[i], y[i + 8]);
            x[2 * i + 1] = zip_high(y[i], y[i + 8]);
        }
    }
}

// The codes of 16 rows of a plane.
struct Codes16 {
    Bytes low, high;
    Codes16(const PlaneCodes& own, int32_t number, int64_t row) {
        const Plane& plane = own.planes[number];
        const uint8_t* from = own.codes + plane.start * own.rows + row * plane.width;
        const Bytes a = load_bytes(from);
        if (plane.width == 1) {
            low = a;
            high = all_bytes(0);
        } else {
            const Bytes b = load_bytes(from + 16);
            low = even_bytes(a, b);
            high = odd_bytes(a, b);
        }
    }
};

bool turn_codes(const PlaneCodes& own, const RecordColumn* columns, int64_t n_columns, int64_t row,
                int64_t n, int64_t stride, uint8_t* out) {
    Bytes has_nan = all_bytes(0);
    for (int64_t first = 0; first < n_columns; first += 16) {
        const int64_t count = n_columns - first < 16 ? n_columns - first : 16;
        for (int64_t r = 0; r < n; r += 16) {
            Bytes low[16], high[16];
            for (int64_t c = 0; c < 16; ++c) {
                low[c] = high[c] = all_bytes(0);
                if (c >= count) continue;
                const RecordColumn& column = columns[first + c];
                const Codes16 codes(own, column.plane, row + r);
                low[c] = codes.low;
                high[c] = codes.high;
                if (column.other < 0) continue;
                const Codes16 other(own, column.other, row + r);
                const Bytes nan = either(differ(low[c], other.low), differ(high[c], other.high));
                low[c] = either(low[c], nan);
                high[c] = either(high[c], nan);
                has_nan = either(has_nan, nan);
            }
            turn_about(low);
            turn_about(high);
            for (int64_t i = 0; i < 16; ++i) {
                uint8_t* to = out + (r + i) * stride;
                if constexpr (kCodeLayout == CodeLayout::words) {
                    store_bytes(to + 2 * first, zip_low(low[i], high[i]));
                    store_bytes(to + 2 * first + 16, zip_high(low[i], high[i]));
                } else {
                    store_bytes(to + first, turn_top(low[i]));
                    store_bytes(to + stride / 2 + first, turn_top(high[i]));
                }
            }
        }
    }
    return has_any(has_nan);
}

#endif

}  // namespace
