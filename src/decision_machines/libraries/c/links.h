/* link: identity */
static inline void dm_link(dm_sum *m, int n) { (void)m; (void)n; }
/* link: sigmoid */
static inline void dm_link(dm_sum *m, int n)
{
    int i;
    for (i = 0; i < n; i++) m[i] = 1 / (1 + DM_EXP(-(DM_SLOPE * m[i])));
}
/* link: softmax */
static inline void dm_link(dm_sum *m, int n)
{
    dm_sum largest = m[0], total = 0;
    int i;
    for (i = 1; i < n; i++) largest = m[i] > largest ? m[i] : largest;
    for (i = 0; i < n; i++) total += m[i] = DM_EXP(m[i] - largest);
    for (i = 0; i < n; i++) m[i] /= total;
}
/* link: exp */
static inline void dm_link(dm_sum *m, int n)
{
    int i;
    for (i = 0; i < n; i++) m[i] = DM_EXP(m[i]);
}
/* link: samme */
static inline void dm_link(dm_sum *m, int n)
{
    dm_sum largest, total = 0;
    int i;
    if (n == 1) {
        m[1] = m[0] / 2;
        m[0] = -m[0] / 2;
        n = 2;
    } else {
        for (i = 0; i < n; i++) m[i] /= n - 1;
    }
    for (largest = m[0], i = 1; i < n; i++) largest = m[i] > largest ? m[i] : largest;
    for (i = 0; i < n; i++) total += m[i] = DM_EXP(m[i] - largest);
    for (i = 0; i < n; i++) m[i] /= total;
}
/* link: isolation */
static inline void dm_link(dm_sum *m, int n)
{
    int i;
    for (i = 0; i < n; i++) m[i] = -(dm_sum)pow(2.0, -m[i]);
}
/* link: xgboost_sigmoid */
static inline void dm_link(dm_sum *m, int n)
{
    int i;
    for (i = 0; i < n; i++) m[i] = 1 / (1 + DM_EXP(-(m[i] > -88.7f ? m[i] : -88.7f)));
}
/* link: xgboost_rounded_exp */
static inline void dm_link(dm_sum *m, int n)
{
    int i;
    for (i = 0; i < n; i++) m[i] = (float)exp((double)m[i]);
}
/* link: xgboost_softmax */
static inline void dm_link(dm_sum *m, int n)
{
    dm_sum largest = m[0];
    double total = 0;
    int i;
    for (i = 1; i < n; i++) largest = m[i] > largest ? m[i] : largest;
    for (i = 0; i < n; i++) total += m[i] = DM_EXP(m[i] - largest);
    for (i = 0; i < n; i++) m[i] /= (float)total;
}
/* link: xgboost_step */
static inline void dm_link(dm_sum *m, int n)
{
    int i;
    for (i = 0; i < n; i++) m[i] = m[i] > 0;
}
/* link: xgboost_sorted */
static inline void dm_link(dm_sum *m, int n)
{
    int i, j;
    for (i = 1; i < n; i++) {
        const dm_sum value = m[i];
        for (j = i; j > 0 && m[j - 1] > value; j--) m[j] = m[j - 1];
        m[j] = value;
    }
}
/* link: xgboost_increments */
static inline void dm_link(dm_sum *m, int n)
{
    int i;
    for (i = 1; i < n; i++) {
        const dm_sum size = m[i] < 0 ? -m[i] : m[i];
        m[i] = m[i - 1] + ((m[i] > 0 ? m[i] : 0) + DM_LOG1P(DM_EXP(-size)) + (dm_sum)1e-6);
    }
}
/* link: catboost_exp */
static inline void dm_link(dm_sum *m, int n)
{
    int i;
    for (i = 0; i < n; i++) m[i] = dm_catboost_exp(m[i]);
}
/* link: catboost_softmax */
static inline void dm_link(dm_sum *m, int n)
{
    double largest = m[0], total = 0;
    int i;
    for (i = 1; i < n; i++) largest = m[i] > largest ? m[i] : largest;
    for (i = 0; i < n; i++) {
        const double x = m[i] - largest;
        m[i] = i >= n - n % 4 && x <= DM_LOWEST_EXP ? 0 : dm_catboost_exp(x);
        total = total + m[i];
    }
    for (i = 0; i < n; i++) m[i] /= total;
}
/* link: catboost_mean_and_variance */
static inline void dm_link(dm_sum *m, int n)
{
    (void)n;
    m[1] = dm_catboost_exp(2 * m[1]);
}
/* link: lightgbm_softplus */
static inline void dm_link(dm_sum *m, int n)
{
    int i;
    for (i = 0; i < n; i++) m[i] = DM_LOG1P(DM_EXP(m[i]));
}
/* link: signed_square */
static inline void dm_link(dm_sum *m, int n)
{
    int i;
    for (i = 0; i < n; i++) m[i] = (m[i] > 0 ? 1 : m[i] < 0 ? -1 : m[i]) * m[i] * m[i];
}
/* before: catboost_ */
#define DM_LOWEST_EXP -708.39641853226408
/* 2 to the power of i / 2048, corrected by a cubic. */
static inline double dm_catboost_exp(double x)
{
    const double shift = 6755399441055744.0; /* 3 * 2^51: leaves the nearest integer in the low bits */
    double shifted, t, scale;
    volatile double product;
    int64_t bits, found;
    x = x < DM_LOWEST_EXP ? DM_LOWEST_EXP : x > 709.78271289338397 ? 709.78271289338397 : x;
    product = x * DM_STEPS_PER_LOG2;
    shifted = product + shift;
    memcpy(&bits, &shifted, 8);
    product = (shifted - shift) * DM_LOG2_PER_STEP;
    t = product - x;
    found = (int64_t)((uint64_t)((bits + 1023 * 2048) >> 11) << 52) | dm_exp_bits[bits & 2047];
    memcpy(&scale, &found, 8);
    product = (3.0000000027955394 - t) * (t * t);
    product = product * 0.16666666685227835064;
    product = product - t + 1.0;
    return product * scale;
}
