/* The native engine of Decision Machines without Python: load a .dm file, predict batches.
 *
 * A .dm file comes from any supported model: `dm convert model.txt -o model.dm`. Margins are the
 * machine's to the bit. Functions that can fail take room for a text that says why; it may be null.
 * A model may be used by many threads at once.
 *
 * The ABI is stable: functions are added, never changed or removed, while DM_ABI_VERSION is 1.
 */
#ifndef DECISION_MACHINES_H
#define DECISION_MACHINES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define DM_API __declspec(dllexport)
#else
#define DM_API __attribute__((visibility("default")))
#endif

#define DM_ABI_VERSION 1

typedef struct dm_model dm_model;

/* The version of the library that runs: DM_ABI_VERSION of its header. */
DM_API int dm_abi_version(void);

/* A model from a file, or from the bytes of one; null where it cannot be read. */
DM_API dm_model* dm_model_load(const char* path, char* error, size_t error_size);
DM_API dm_model* dm_model_load_bytes(const void* bytes, size_t size, char* error,
                                     size_t error_size);
/* Null is taken, too. */
DM_API void dm_model_free(dm_model* model);

DM_API int64_t dm_model_n_features(const dm_model* model);
DM_API int64_t dm_model_n_outputs(const dm_model* model);
DM_API int64_t dm_model_n_trees(const dm_model* model);
/* What the file says of features, labels, link and classes: JSON, as long as the model lives. */
DM_API const char* dm_model_describe(const dm_model* model);

/* (n_rows, n_outputs) margins of (n_rows, n_features) values, row by row; NaN is missing, and a
 * feature given as labels is its code, the label's place in the list that the description has.
 * Models that sum in float32 give floats' values as doubles. 0, or -1 where it failed.
 * n_threads below 1 uses all processors. */
DM_API int dm_model_margin(const dm_model* model, const double* x, int64_t n_rows, double* out,
                           int n_threads, char* error, size_t error_size);
/* The same of floats. */
DM_API int dm_model_margin_f32(const dm_model* model, const float* x, int64_t n_rows, double* out,
                               int n_threads, char* error, size_t error_size);
/* (n_rows, n_trees) exit leaves, counted from 0 within each tree, left to right. */
DM_API int dm_model_apply(const dm_model* model, const double* x, int64_t n_rows, int32_t* out,
                          int n_threads, char* error, size_t error_size);

#ifdef __cplusplus
}
#endif
#endif
