/* A feature as columns read it: numbers that are read as ranges by the number of their range. */
static inline double dm_code(const double *x, int32_t feature)
{
#if DM_RANGES
    if (dm_is_range[feature] && !isnan(x[feature])) {
        int32_t low = dm_edge_start[feature], high = dm_edge_start[feature + 1];
        while (low < high) {
            const int32_t middle = low + (high - low) / 2;
            if (dm_edges[middle] < x[feature]) low = middle + 1;
            else high = middle;
        }
        return low - dm_edge_start[feature];
    }
#endif
    return x[feature];
}
