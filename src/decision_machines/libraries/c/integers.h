#if DM_WHOLE_NUMBERS
/* The codes of a row of DM_N_FEATURES whole numbers, of which none is missing. */
static inline void dm_code_integers(const int32_t *x, uint16_t *code)
{
    int i;
    (void)x;
    for (i = 0; i < DM_N_SLOTS; i++) {
        const int64_t value = x[dm_slot_feature[i]];
        int32_t low = dm_whole_start[i], high = dm_whole_start[i + 1];
        while (low < high) {
            const int32_t middle = low + (high - low) / 2;
            if (dm_whole_threshold[middle] < value) low = middle + 1;
            else high = middle;
        }
        code[i] = (uint16_t)(low - dm_whole_start[i]);
    }
}
#endif

/* The exit leaf of one tree, counted from 0, left to right. */
static inline int32_t dm_exit(const uint16_t *code, int32_t tree)
{
    const int32_t first = dm_test_start[tree];
    int32_t at = dm_test_start[tree + 1] > first ? 0 : -1;
    while (at >= 0) {
        const dm_node *node = dm_nodes + first + at;
        at = node->child[code[node->slot] > node->rank];
    }
    return ~at;
}

static inline void dm_apply(const uint16_t *code, int32_t *leaf)
{
    int32_t tree;
    for (tree = 0; tree < DM_N_TREES; tree++) leaf[tree] = dm_exit(code, tree);
}

/* The DM_N_OUTPUTS margins, each times 2^DM_SHIFT. */
static inline void dm_margin(const uint16_t *code, int64_t *out)
{
    int32_t tree;
    int o;
    for (o = 0; o < DM_N_OUTPUTS; o++) out[o] = dm_start[o];
    for (tree = 0; tree < DM_N_TREES; tree++) {
        const size_t at = (size_t)(dm_test_start[tree] + tree + dm_exit(code, tree)) * DM_WIDTH;
        int c;
        for (c = 0; c < DM_WIDTH; c++) out[DM_NARROW ? dm_feeds[tree] : c] += dm_values[at + (size_t)c];
    }
}

/* The place of the largest margin, the first of equals; of one output, 1 where it is above 0. */
static inline int dm_best(const uint16_t *code)
{
    int64_t margin[DM_N_OUTPUTS];
    int o, best = 0;
    dm_margin(code, margin);
    if (DM_N_OUTPUTS == 1) return margin[0] > 0;
    for (o = 1; o < DM_N_OUTPUTS; o++) {
        if (margin[o] > margin[best]) best = o;
    }
    return best;
}
