/* 0 (left), 1 (right) or NaN (the test's missing answer) for a category. */
static inline dm_column dm_member(int32_t set, dm_column value)
{
    int answer = dm_set_outside[set];
    int32_t low = (int32_t)dm_set_start[set], end = (int32_t)dm_set_start[set + 1], high = end;
    if (isnan(value)) return value;
    if ((value > DM_LOWEST_CATEGORY || value == 0) && value < (dm_column)2147483648.0) {
        const int64_t category = (int64_t)value;
        if (!DM_WHOLE_CATEGORIES || (dm_column)category == value) {
            while (low < high) {
                const int32_t middle = low + (high - low) / 2;
                if (dm_member_of_set[middle] < category) low = middle + 1;
                else high = middle;
            }
            if (low < end && dm_member_of_set[low] == category) answer = dm_member_answer[low];
        }
    }
    return answer ? (dm_column)(answer > 0) : (dm_column)NAN;
}
