/* The code of a text label of a feature, which stands for it in x. 0, or 1 where the model does
   not know the label: then its code is what the model makes of unknown labels. */
static inline int dm_label(int feature, const char *label, double *code)
{
    int i;
    for (i = 0; i < DM_N_LABELS; i++) {
        if (dm_labels[i].feature == feature && !strcmp(dm_labels[i].text, label)) {
            *code = dm_labels[i].code;
            return 0;
        }
    }
    *code = DM_UNKNOWN_LABEL;
    return 1;
}
