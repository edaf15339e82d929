/* The codes of a row of DM_N_FEATURES numbers; NaN is missing. 0, or the number (from 1) of the
   feature whose value the model does not take. */
static inline int dm_code_numbers(const double *x, uint16_t *code)
{
    dm_column z[DM_N_SLOTS + 1];
    int i;
    const int refused = dm_read(x, z);
    if (refused) return refused;
    for (i = 0; i < DM_N_SLOTS; i++) {
        int32_t low = dm_threshold_start[i], high = dm_threshold_start[i + 1];
        while (low < high) {
            const int32_t middle = low + (high - low) / 2;
            if (dm_threshold[middle] < z[i]) low = middle + 1;
            else high = middle;
        }
        code[i] = isnan(z[i]) ? DM_NEVER : (uint16_t)(low - dm_threshold_start[i]);
    }
    return 0;
}
