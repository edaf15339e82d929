/* The code of a label that is a number, as `dm_label` gives those of texts. */
static inline int dm_label_number(int feature, double label, double *code)
{
    int i;
    for (i = 0; i < DM_N_NUMBER_LABELS; i++) {
        if (dm_number_labels[i].feature == feature && dm_number_labels[i].label == label) {
            *code = dm_number_labels[i].code;
            return 0;
        }
    }
    *code = DM_UNKNOWN_LABEL;
    return 1;
}
