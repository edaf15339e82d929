/* Margins of rows of numbers, one row a line on standard input, by a .dm file.
 *
 *   dm convert model.txt -o model.dm
 *   cc score.c -I"$(python -c 'import decision_machines as dm; print(dm.c_library().header.parent)')" \
 *      "$(python -c 'import decision_machines as dm; print(dm.c_library().library)')" -o score
 *   ./score model.dm < rows.txt
 */
#include <stdio.h>
#include <stdlib.h>

#include "decision_machines.h"

int main(int argc, char** argv) {
    char error[500];
    if (argc != 2) {
        fprintf(stderr, "usage: score model.dm < rows.txt\n");
        return 2;
    }
    dm_model* model = dm_model_load(argv[1], error, sizeof error);
    if (model == NULL) {
        fprintf(stderr, "%s\n", error);
        return 2;
    }
    int64_t n = dm_model_n_features(model), k = dm_model_n_outputs(model), rows = 0, room = 64;
    double* x = malloc((size_t)(room * n) * sizeof *x);
    for (int64_t at = 0; x != NULL && scanf("%lf", &x[at]) == 1;) {
        if (++at % n == 0 && ++rows == room) {
            room *= 2;
            x = realloc(x, (size_t)(room * n) * sizeof *x);
        }
    }
    double* margins = malloc((size_t)(rows * k + 1) * sizeof *margins);
    int failed = x == NULL || margins == NULL ||
                 dm_model_margin(model, x, rows, margins, 0, error, sizeof error);
    for (int64_t i = 0; !failed && i < rows * k; ++i)
        printf("%.17g%c", margins[i], i % k == k - 1 ? '\n' : ' ');
    if (failed) fprintf(stderr, "%s\n", error);
    free(margins);
    free(x);
    dm_model_free(model);
    return failed ? 2 : 0;
}
