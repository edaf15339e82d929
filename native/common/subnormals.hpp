// Included in an unnamed namespace, for it is compiled for several targets; <immintrin.h> before
// it.

// Weights far from a row's path underflow: a flushed zero is as good as a subnormal number, and a
// hundred times faster.
class FlushSubnormals {
public:
#if defined(__x86_64__)
    FlushSubnormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }
    ~FlushSubnormals() { _mm_setcsr(before_); }

private:
    unsigned before_;
#endif
};
