/* The six functions of Intel MKL that ideep4py's extension calls, written anew: a library in place of libmklml_intel.so.
 *
 * Names, types, status codes and the basic generator are those of MKL's public reference; nothing here is MKL's code.
 * Streams of VSL_BRNG_MCG31 give the draws of MKL bit by bit. Another generator than that one, which is the only one
 * that any ideep4py asks for, is refused with MKL's code. MKL prints a line for a wrong parameter; this does not.
 *
 * cc -O3 -fopenmp-simd -fno-math-errno -fno-trapping-math -fPIC -shared -fvisibility=hidden \
 *    -Wl,-soname,libmklml_intel.so mklml_stub.c -lm
 */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))

enum {
    STATUS_OK = 0,
    ERROR_BAD_ARGUMENTS = -3,
    ERROR_NO_MEMORY = -4,
    ERROR_NULL_POINTER = -5,
    ERROR_UNKNOWN_GENERATOR = -1000,
    ERROR_BAD_STREAM = -1006
};

/* What tells this library from MKL's to one who looks at the file (strings, or dlsym). */
PUBLIC extern const char ideepdoctor_mkl_stub[];
const char ideepdoctor_mkl_stub[] = "ideepdoctor stub of libmklml_intel.so 1";

/* ------------------------------------------------------------------ streams: x' = A x mod M, u = x / M (MCG31m1) */

#define GENERATOR_MCG31 (1 << 20)
#define M UINT64_C(0x7fffffff)
#define A UINT64_C(1132489760)
#define MARK UINT64_C(0x3133474d43756269)
/* Draws that are computed side by side; a multiplication waits for the one before it. */
#define LANES 32

typedef struct {
    uint64_t mark;
    uint64_t next; /* the x of the next draw, 1 to M - 1 */
} stream_state;

/* a b mod M for factors below M, of which neither is 0: the sum of both halves is below 2 M and is not M. */
static inline uint64_t times(uint64_t a, uint64_t b) {
    uint64_t product = a * b;
    uint64_t sum = (product & M) + (product >> 31);
    return sum >= M ? sum - M : sum;
}

static uint64_t power(uint64_t base, uint64_t exponent) {
    uint64_t result = 1;
    for (; exponent; exponent >>= 1, base = times(base, base))
        if (exponent & 1)
            result = times(result, base);
    return result;
}

static int check(const stream_state *stream) {
    if (!stream)
        return ERROR_NULL_POINTER;
    return stream->mark == MARK ? STATUS_OK : ERROR_BAD_STREAM;
}

PUBLIC int vslNewStream(void **stream, const int generator, const unsigned int seed) {
    if (!stream)
        return ERROR_NULL_POINTER;
    if (generator != GENERATOR_MCG31)
        return ERROR_UNKNOWN_GENERATOR;
    stream_state *made = malloc(sizeof *made);
    if (!made)
        return ERROR_NO_MEMORY;
    made->mark = MARK;
    made->next = seed % M ? seed % M : 1;
    *stream = made;
    return STATUS_OK;
}

PUBLIC int vslDeleteStream(void **stream) {
    if (!stream)
        return ERROR_NULL_POINTER;
    int status = check(*stream);
    if (status == STATUS_OK) {
        ((stream_state *)*stream)->mark = 0;
        free(*stream);
        *stream = NULL;
    }
    return status;
}

/* A count below zero is read as 2^64 more, as MKL does. */
PUBLIC int vslSkipAheadStream(void *stream, const long long int count) {
    stream_state *state = stream;
    int status = check(state);
    if (status == STATUS_OK)
        state->next = times(state->next, power(A, (uint64_t)count));
    return status;
}

/* The least x whose draw is 0: a draw is 1 unless u >= p, both in single precision (so it is 1 where p is no number). */
static uint64_t threshold(double p) {
    float limit = (float)p;
    uint64_t low = 1, high = M;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if ((float)((double)middle / (double)M) >= limit)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

PUBLIC int viRngBernoulli(const int method, void *stream, const int n, int r[], const double p) {
    stream_state *state = stream;
    int status = check(state);
    if (status != STATUS_OK)
        return status;
    if (n == 0)
        return STATUS_OK;
    if (n < 0 || method != 0 || !r || p < 0 || p > 1)
        return ERROR_BAD_ARGUMENTS;
    const uint64_t limit = threshold(p), step = power(A, LANES);
    uint64_t x[LANES];
    x[0] = state->next;
    for (int lane = 1; lane < LANES; ++lane)
        x[lane] = times(x[lane - 1], A);
    long done = 0; /* not int: done + LANES may be beyond it */
    for (; n - done >= LANES; done += LANES) {
        int *out = r + done;
#pragma omp simd
        for (int lane = 0; lane < LANES; ++lane) {
            out[lane] = x[lane] < limit;
            x[lane] = times(x[lane], step);
        }
    }
    const int rest = (int)(n - done);
    for (int lane = 0; lane < rest; ++lane)
        r[done + lane] = x[lane] < limit;
    state->next = x[rest];
    return STATUS_OK;
}

/* ------------------------------------------------------------------------------------- vectors: y may be a (or b) */

/* Products for one thread; fewer are done before another one has woken up. */
#define SHARE 65536

/* OpenMP's runtime, if the process has one: the extension that calls us brings it, and this library needs none. */
__attribute__((weak)) extern void GOMP_parallel(void (*)(void *), void *, unsigned, unsigned);
__attribute__((weak)) extern int omp_get_max_threads(void), omp_get_num_threads(void), omp_get_thread_num(void);
__attribute__((weak)) extern int omp_in_parallel(void);

typedef struct {
    long n;
    const float *a, *b;
    float *y;
} products;

static void multiply(long n, const float a[], const float b[], float y[]) {
#pragma omp simd
    for (long i = 0; i < n; ++i)
        y[i] = a[i] * b[i];
}

static void multiply_share(void *given) {
    const products *all = given;
    /* Whole cache lines, as many for each; the last gets what is left. */
    long share = (all->n / omp_get_num_threads() / 16 + 1) * 16, start = share * omp_get_thread_num();
    if (start < all->n)
        multiply(all->n - start < share ? all->n - start : share, all->a + start, all->b + start, all->y + start);
}

static int threads_for(long n) {
    if (n < 2 * SHARE || !GOMP_parallel || !omp_get_max_threads || !omp_get_num_threads || !omp_get_thread_num)
        return 1;
    if (!omp_in_parallel || omp_in_parallel())
        return 1;
    long most = omp_get_max_threads();
    return (int)(n / SHARE < most ? n / SHARE : most);
}

PUBLIC void vsMul(const int n, const float a[], const float b[], float y[]) {
    if (n <= 0 || !a || !b || !y)
        return;
    products all = {n, a, b, y};
    int threads = threads_for(n);
    if (threads > 1)
        GOMP_parallel(multiply_share, &all, (unsigned)threads, 0);
    else
        multiply(n, a, b, y);
}

#define BLOCK 256
#define SQRT_HALF_BITS UINT64_C(0x3fe6a09e667f3bcd)
#define ONE_BITS UINT64_C(0x3ff0000000000000)
#define FRACTION_BITS UINT64_C(0x000fffffffffffff)

static inline uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double value_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* log2 of a positive normal number within 2^-44 of itself: x = 2^e m, m from sqrt(1/2) to sqrt(2), and the series
 * of the area tangent: ln m = 2 (f + f^3/3 + ... + f^15/15), f = (m - 1) / (m + 1), |f| < 0.172. */
static inline double log2_of(double x) {
    uint64_t bits = bits_of(x) + (ONE_BITS - SQRT_HALF_BITS);
    double m = value_of((bits & FRACTION_BITS) + SQRT_HALF_BITS);
    /* The exponent as a number: it stands in the last bits of a number from 2^52 on. */
    double e = value_of((bits >> 52) | UINT64_C(0x4330000000000000)) - (4503599627370496.0 + 1023.0);
    double f = (m - 1) / (m + 1), s = f * f;
    double sum = 1.0 / 15;
    sum = sum * s + 1.0 / 13;
    sum = sum * s + 1.0 / 11;
    sum = sum * s + 1.0 / 9;
    sum = sum * s + 1.0 / 7;
    sum = sum * s + 1.0 / 5;
    sum = sum * s + 1.0 / 3;
    sum = sum * s + 1.0;
    return e + sum * f * 2.8853900817779268; /* 2 / ln 2 */
}

/* 2^t within 2^-41 of itself for |t| <= 200: t = k + f, |f| <= 1/2, and the series of e^(f ln 2) up to the tenth power. */
static inline double exp2_of(double t) {
    const double shift = 6755399441055744.0; /* 1.5 * 2^52: the sum with it is rounded to a whole number */
    double shifted = t + shift;
    double g = (t - (shifted - shift)) * 0.69314718055994531;
    double sum = 1.0 / 3628800;
    sum = sum * g + 1.0 / 362880;
    sum = sum * g + 1.0 / 40320;
    sum = sum * g + 1.0 / 5040;
    sum = sum * g + 1.0 / 720;
    sum = sum * g + 1.0 / 120;
    sum = sum * g + 1.0 / 24;
    sum = sum * g + 1.0 / 6;
    sum = sum * g + 1.0 / 2;
    sum = sum * g + 1.0;
    sum = sum * g + 1.0;
    return sum * value_of(((bits_of(shifted) + 1023) & 0x7ff) << 52);
}

/* The powers 1/2 and -1/2 are MKL's roots, which differ from a power at -0 (-0 and -inf) and at -inf (no number). */
static void roots(long n, const float a[], float b, float y[]) {
    if (b > 0) {
#pragma omp simd
        for (long i = 0; i < n; ++i)
            y[i] = sqrtf(a[i]);
    } else {
#pragma omp simd
        for (long i = 0; i < n; ++i)
            y[i] = (float)(1 / sqrt((double)a[i]));
    }
}

/* Powers of a block, by way of double precision; what is zero, infinite, no number or below zero takes powf's way. */
static void powers(int n, const float a[], float b, float out[]) {
    int others = 0;
#pragma omp simd reduction(| : others)
    for (int i = 0; i < n; ++i) {
        float x = a[i];
        int usual = x > 0 && x <= 3.402823466e38f;
        others |= !usual;
        double t = (double)b * log2_of(usual ? x : 1.0f);
        t = t > 200 ? 200 : t;
        t = t < -200 ? -200 : t;
        out[i] = (float)exp2_of(t);
    }
    for (int i = 0; others && i < n; ++i)
        if (!(a[i] > 0 && a[i] <= 3.402823466e38f))
            out[i] = powf(a[i], b);
}

PUBLIC void vsPowx(const int n, const float a[], const float b, float y[]) {
    if (n <= 0 || !a || !y)
        return;
    if (b == 0.5f || b == -0.5f) {
        roots(n, a, b, y);
        return;
    }
    float out[BLOCK];
    for (long done = 0; done < n; done += BLOCK) {
        int count = n - done < BLOCK ? (int)(n - done) : BLOCK;
        if (isfinite(b))
            powers(count, a + done, b, out);
        else
            for (int i = 0; i < count; ++i)
                out[i] = powf(a[done + i], b);
        memcpy(y + done, out, (size_t)count * sizeof *out);
    }
}
