/* piece: response */
/* The DM_N_RESPONSES responses of a row's margins: the link, group by group. */
static inline void dm_respond(const double *margin, double *out)
{
    dm_sum part[DM_MOST_OF_GROUP + 1];
    int g, i;
    for (g = 0; g < DM_N_GROUPS; g++) {
        const int first = dm_group_start[g], n = dm_group_start[g + 1] - first;
        const int to = dm_response_start[g], found = dm_response_start[g + 1] - to;
        for (i = 0; i < n; i++) {
            part[i] = (dm_sum)margin[first + i];
#if DM_AVERAGED
            part[i] /= DM_AVERAGED_OVER;
#endif
        }
        dm_link(part, n);
        for (i = 0; i < found; i++) out[to + i] = (double)part[i];
    }
}
/* piece: probabilities */
/* The DM_N_PROBABILITIES probabilities of the classes. */
static inline int dm_predict_proba(const double *x, double *out)
{
    double margin[DM_N_OUTPUTS];
    const int refused = dm_margin(x, margin);
    if (refused) return refused;
    dm_respond(margin, out);
#if DM_ONE_OF_TWO
    out[1] = out[0];
    out[0] = (double)(1 - (dm_sum)out[1]);
#endif
    return 0;
}
/* piece: predict */
/* The DM_N_PREDICTIONS predictions: numbers, labels that are numbers, or positions of labels. */
static inline int dm_predict(const double *x, double *out)
{
    double margin[DM_N_OUTPUTS], response[DM_N_RESPONSES];
    int i;
    const int refused = dm_margin(x, margin);
    if (refused) return refused;
    dm_respond(margin, response);
    (void)i;
    (void)response;
    DM_DECISION
    return 0;
}
/* piece: decision response */
    for (i = 0; i < DM_N_RESPONSES; i++) out[i] = response[i];
/* piece: decision margin */
    for (i = 0; i < DM_N_OUTPUTS; i++) out[i] = margin[i];
/* piece: decision argmax */
    for (i = 0; i < DM_N_GROUPS; i++) {
        int j, best = dm_response_start[i];
        for (j = best + 1; j < dm_response_start[i + 1]; j++) {
            if (response[j] > response[best]) best = j;
        }
        out[i] = dm_class_value[dm_class_start[i] + best - dm_response_start[i]];
    }
/* piece: decision argmax_margin */
    {
        int best = 0;
        for (i = 1; i < DM_N_OUTPUTS; i++) {
            if (margin[i] > margin[best]) best = i;
        }
        out[0] = dm_class_value[best];
    }
/* piece: decision above */
    out[0] = dm_class_value[response[0] > DM_THRESHOLD];
/* piece: decision margin_above */
    out[0] = dm_class_value[margin[0] > DM_THRESHOLD];
/* piece: decision second_margin_above */
    out[0] = dm_class_value[margin[1] > DM_THRESHOLD];
/* piece: decision margin_at_least */
    out[0] = dm_class_value[margin[0] >= DM_THRESHOLD];
/* piece: decision inlier */
    out[0] = response[0] - DM_THRESHOLD < 0 ? -1 : 1;
/* piece: decision above_each */
    for (i = 0; i < DM_N_RESPONSES; i++) out[i] = response[i] > DM_THRESHOLD;
/* piece: decision each_margin_above */
    for (i = 0; i < DM_N_OUTPUTS; i++) out[i] = margin[i] > DM_THRESHOLD;
