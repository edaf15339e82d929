/* --- What follows is the same for every model: how its tables are read. --------------------- */

/* A row as the tests read it: a slot for each column, and a second one where some of its tests
   send a missing value left. NaN compares false, so it goes right; -inf goes left. */
static inline int dm_read(const double *x, dm_column *z)
{
    int i;
    (void)x;
    (void)z;
#if DM_CHECKED
    for (i = 0; i < DM_N_FEATURES; i++) {
        if (isnan(x[i]) ? !dm_may_be_missing[i] : (x[i] < dm_low[i] || x[i] > dm_high[i])) return i + 1;
    }
    for (i = 0; i < DM_N_REFUSED; i++) {
        if (dm_code(x, dm_refused_feature[i]) == dm_refused_code[i]) return dm_refused_feature[i] + 1;
    }
#endif
    for (i = 0; i < DM_N_SLOTS; i++) {
        dm_column value = (dm_column)dm_code(x, dm_slots[i].feature);
        if (value == DM_MISSING_VALUE) value = (dm_column)NAN;
        switch (dm_slots[i].rule) {
        case 1:
            if (isnan(value)) value = 0;
            break;
        case 2:
            if (value <= DM_ZERO && value >= -DM_ZERO) value = (dm_column)NAN;
            break;
#if DM_N_SETS
        case 3:
            value = dm_member(dm_slots[i].set, value);
            break;
#endif
        default:
            break;
        }
        z[i] = dm_slots[i].missing_left && isnan(value) ? (dm_column)-INFINITY : value;
    }
    return 0;
}
