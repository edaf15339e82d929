#if DM_OBLIQUE
/* Whether a test sends z right. Products are rounded before they are added. */
static inline int dm_goes_right(int32_t test, const dm_column *z)
{
    dm_column total = 0;
    uint32_t i;
    for (i = dm_term_start[test]; i < dm_term_start[test + 1]; i++) {
        volatile dm_column product = z[dm_term_slot[i]] * dm_term_weight[i];
        total += product;
    }
    return isnan(total) ? dm_missing_right[test] : !(total <= dm_nodes[test].t);
}
#define DM_RIGHT(node, test, z) dm_goes_right(test, z)
#else
#define DM_RIGHT(node, test, z) (!((z)[(node)->slot] <= (node)->t))
#endif

/* The leaves of one row, DM_WAYS trees at a time: a step of one tree does not wait for another's. */
#define DM_WAYS 8
static inline void dm_exits(const dm_column *z, int32_t *leaf)
{
    int32_t tree = 0;
    for (; tree + DM_WAYS <= DM_N_TREES; tree += DM_WAYS) {
        int32_t at[DM_WAYS], step, open = 0;
        int w;
        for (w = 0; w < DM_WAYS; w++) at[w] = 0;
        for (step = dm_least_depth[tree / DM_WAYS]; step > 0; step--) {
            for (w = 0; w < DM_WAYS; w++) {
                const int32_t test = dm_test_start[tree + w] + at[w];
                const dm_node *node = dm_nodes + test;
                at[w] = node->child[DM_RIGHT(node, test, z)];
            }
        }
        for (w = 0; w < DM_WAYS; w++) open |= (dm_test_start[tree + w + 1] > dm_test_start[tree + w]) && at[w] >= 0;
        while (open) {
            open = 0;
            for (w = 0; w < DM_WAYS; w++) {
                const int32_t first = dm_test_start[tree + w];
                int32_t test, next;
                const dm_node *node;
                if (at[w] < 0 || dm_test_start[tree + w + 1] == first) continue;
                test = first + at[w];
                node = dm_nodes + test;
                next = node->child[DM_RIGHT(node, test, z)];
                at[w] = next;
                open |= next >= 0;
            }
        }
        for (w = 0; w < DM_WAYS; w++) leaf[tree + w] = at[w] < 0 ? ~at[w] : 0;
    }
    for (; tree < DM_N_TREES; tree++) {
        const int32_t first = dm_test_start[tree];
        int32_t at = dm_test_start[tree + 1] > first ? 0 : -1;
        while (at >= 0) {
            const dm_node *node = dm_nodes + first + at;
            at = node->child[DM_RIGHT(node, first + at, z)];
        }
        leaf[tree] = ~at;
    }
}

/* One value of a leaf, counted over all trees. */
static inline dm_sum dm_leaf_value(const double *x, int32_t leaf, int column)
{
#if DM_LINEAR
    dm_linear total = dm_intercept[(size_t)leaf * DM_WIDTH + column];
    uint32_t i;
    for (i = dm_linear_start[leaf]; i < dm_linear_start[leaf + 1]; i++) {
        dm_column value = (dm_column)x[dm_linear_feature[i]];
        volatile dm_linear product;
        if (isnan(value)) return (dm_sum)dm_values[(size_t)leaf * DM_WIDTH + column];
        product = dm_coefficient[(size_t)i * DM_WIDTH + column] * (dm_linear)value;
        total += product;
    }
    return (dm_sum)total;
#else
    (void)x;
    return (dm_sum)dm_values[(size_t)leaf * DM_WIDTH + column];
#endif
}

/* The margins of a row whose exit leaves are known, added tree after tree. */
static inline void dm_sum_leaves(const double *x, const int32_t *leaf, double *out)
{
    dm_sum total[DM_N_OUTPUTS];
    int32_t tree;
    int o;
#if DM_AGGREGATE == DM_MEDIAN
    dm_sum value[DM_N_TREES + 1];
    int32_t order[DM_N_TREES + 1], i, j;
    double share = 0, half = 0;
    for (tree = 0; tree < DM_N_TREES; tree++) value[tree] = dm_leaf_value(x, dm_test_start[tree] + tree + leaf[tree], 0);
    for (i = 0; i < DM_N_TREES; i++) {
        for (j = i; j > 0 && value[order[j - 1]] > value[i]; j--) order[j] = order[j - 1];
        order[j] = i;
    }
    for (i = 0; i < DM_N_TREES; i++) half += dm_tree_weight[order[i]];
    half *= 0.5;
    total[0] = 0;
    for (i = 0; i < DM_N_TREES; i++) {
        total[0] = value[order[i]];
        share += dm_tree_weight[order[i]];
        if (share >= half) break;
    }
    (void)o;
#else
    for (o = 0; o < DM_N_OUTPUTS; o++) total[o] = dm_start[o];
    for (tree = 0; tree < DM_N_TREES; tree++) {
        const int32_t at = dm_test_start[tree] + tree + leaf[tree];
        int c;
        for (c = 0; c < DM_WIDTH; c++) {
            const dm_sum value = dm_leaf_value(x, at, c);
            const int to = DM_NARROW ? dm_feeds[tree] : c;
#if DM_AGGREGATE == DM_SUM
            total[to] += value;
#elif DM_AGGREGATE == DM_LEAST
            if (value < total[to] || isnan(value)) total[to] = value;
#else
            if (value > total[to] || isnan(value)) total[to] = value;
#endif
        }
    }
    for (o = 0; o < DM_N_OUTPUTS; o++) {
#if DM_DIVIDES
        total[o] = total[o] / DM_DIVISOR;
#endif
#if DM_SCALES
        total[o] = total[o] * DM_SCALE;
#endif
#if DM_BASE_LAST
        total[o] = total[o] + dm_base[o];
#endif
    }
#endif
    for (o = 0; o < DM_N_OUTPUTS; o++) out[o] = (double)total[o];
}

/* The exit leaf of every tree, counted from 0, left to right. */
static inline int dm_apply(const double *x, int32_t *leaf)
{
    dm_column z[DM_N_SLOTS + 1];
    const int refused = dm_read(x, z);
    if (!refused) dm_exits(z, leaf);
    return refused;
}

/* The DM_N_OUTPUTS margins (raw scores) of a row of DM_N_FEATURES numbers; NaN is missing.
   0, or the number (from 1) of the feature whose value the model does not take. */
static inline int dm_margin(const double *x, double *out)
{
    int32_t leaf[DM_N_TREES + 1];
    const int refused = dm_apply(x, leaf);
    if (!refused) dm_sum_leaves(x, leaf, out);
    return refused;
}

/* Margins of n rows that lie one after the other. 0, or the number (from 1) of the first row
   that is refused; those before it are done. Tree by tree over DM_BLOCK rows, so that a tree's
   tests are read from the nearest cache. */
#define DM_BLOCK 64
static inline size_t dm_margin_batch(const double *x, size_t n, double *out)
{
    static const int ways = DM_WAYS;
    dm_column z[DM_BLOCK][DM_N_SLOTS + 1];
    int32_t leaf[DM_BLOCK][DM_N_TREES + 1];
    size_t start;
    for (start = 0; start < n; start += DM_BLOCK) {
        const int rows = n - start < DM_BLOCK ? (int)(n - start) : DM_BLOCK;
        size_t refused = 0;
        int r, good = rows;
        int32_t tree;
        for (r = 0; r < rows; r++) {
            if (dm_read(x + (start + r) * DM_N_FEATURES, z[r])) {
                refused = start + r + 1;
                good = r;
                break;
            }
        }
        for (tree = 0; tree < DM_N_TREES; tree++) {
            const int32_t first = dm_test_start[tree];
            const dm_node *nodes = dm_nodes + first;
            if (dm_test_start[tree + 1] == first) {
                for (r = 0; r < good; r++) leaf[r][tree] = 0;
                continue;
            }
            for (r = 0; r < good; r += ways) {
                const int span = good - r < ways ? good - r : ways;
                int32_t at[DM_WAYS], open = 1;
                int w;
                for (w = 0; w < ways; w++) at[w] = 0;
                while (open) {
                    open = 0;
                    for (w = 0; w < ways; w++) {
                        const int32_t now = at[w] < 0 ? 0 : at[w];
                        const dm_column *row = z[r + (w < span ? w : 0)];
                        const int32_t next = nodes[now].child[DM_RIGHT(nodes + now, first + now, row)];
                        at[w] = at[w] < 0 ? at[w] : next;
                        open |= at[w] >= 0;
                    }
                }
                for (w = 0; w < span; w++) leaf[r + w][tree] = ~at[w];
            }
        }
        for (r = 0; r < good; r++) {
            dm_sum_leaves(x + (start + r) * DM_N_FEATURES, leaf[r], out + (start + r) * DM_N_OUTPUTS);
        }
        if (refused) return refused;
    }
    return 0;
}
