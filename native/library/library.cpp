#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine.hpp"
#include "engine/few.hpp"
#include "engine/kernels/find.hpp"
#include "library/decision_machines.h"
#include "library/model_file.hpp"

using dm::engine::Engine;
using dm::engine::Source;

struct dm_model {
    explicit dm_model(std::vector<char> bytes)
        : file(std::move(bytes)),
          kernels(dm::engine::find_kernels("auto")),
          all(compile(file.view(), kernels, {})) {
        if (!all.plan.can_walk()) {
            const auto kind = dm::engine::kind_for_few(file.view(), *kernels);
            few = std::make_unique<Engine>(compile(file.view(), kernels, {kind, false}));
        }
    }

    const Engine& engine_for(int64_t n_rows) const {
        const bool is_few = few && n_rows < dm::engine::enough_rows(*kernels) &&
                            dm::engine::takes_few(few->plan, *kernels, n_rows);
        return is_few ? *few : all;
    }

    dm::library::ModelFile file;
    const dm::engine::Kernels* kernels;
    Engine all;
    std::unique_ptr<Engine> few;
};

namespace {

void tell(char* error, size_t size, const char* doing, const char* found) {
    if (error != nullptr && size > 0) std::snprintf(error, size, "While %s: %s.", doing, found);
}

// What `work` gives, or `failed` with the reason told: no exception leaves this library.
template <typename Work, typename Failed>
auto guarded(char* error, size_t size, const char* doing, Failed failed, const Work& work)
    -> decltype(work()) {
    try {
        return work();
    } catch (const std::bad_alloc&) {
        tell(error, size, doing, "there is not enough memory");
    } catch (const std::exception& thrown) {
        tell(error, size, doing, thrown.what());
    } catch (...) {
        tell(error, size, doing, "an error of no known kind");
    }
    return failed;
}

int64_t threads_of(int n_threads, int64_t n_rows) {
    // Fewer rows than this are done before a second thread has started.
    constexpr int64_t kRowsForThreads = 2048;
    const int64_t all = std::max(1u, std::thread::hardware_concurrency());
    const int64_t wanted = n_threads < 1 ? all : n_threads;
    return n_rows < kRowsForThreads ? 1 : wanted;
}

template <typename T>
Source rows_of(const dm_model* model, const T* x, int64_t n_rows) {
    if (model == nullptr || n_rows < 0 || (n_rows > 0 && x == nullptr))
        throw std::invalid_argument("no model, no rows, or a negative number of them");
    const int64_t width = dm_model_n_features(model) * static_cast<int64_t>(sizeof(T));
    Source source;
    source.n_rows = n_rows;
    source.is_array = true;
    source.first.data = reinterpret_cast<const char*>(x);
    source.first.stride = width;
    source.first.dtype = sizeof(T) == 4 ? dm::engine::Dtype::f32 : dm::engine::Dtype::f64;
    source.next = sizeof(T);
    return source;
}

template <typename T>
int margin(const dm_model* model, const T* x, int64_t n_rows, double* out, int n_threads,
           char* error, size_t error_size) {
    return guarded(error, error_size, "predicting margins", -1, [&] {
        const Source source = rows_of(model, x, n_rows);
        if (n_rows > 0 && out == nullptr) throw std::invalid_argument("no room for the margins");
        const int64_t threads = threads_of(n_threads, n_rows);
        const Engine& engine = model->engine_for(n_rows);
        if (!model->file.view().output.single) {
            if (n_rows > 0) engine.margin(source, threads, out);
            return 0;
        }
        std::vector<float> found(static_cast<size_t>(n_rows * dm_model_n_outputs(model)));
        if (n_rows > 0) engine.margin(source, threads, found.data());
        std::copy(found.begin(), found.end(), out);
        return 0;
    });
}

dm_model* made(std::vector<char> bytes) { return new dm_model(std::move(bytes)); }

}  // namespace

extern "C" {

int dm_abi_version(void) { return DM_ABI_VERSION; }

dm_model* dm_model_load(const char* path, char* error, size_t error_size) {
    const std::string doing = std::string("loading ") + (path == nullptr ? "a file" : path);
    return guarded(error, error_size, doing.c_str(), nullptr, [&]() -> dm_model* {
        if (path == nullptr) throw std::invalid_argument("no path");
        std::ifstream file(path, std::ios::binary | std::ios::ate);
        const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
        if (size < 0) throw std::invalid_argument("it cannot be opened");
        std::vector<char> bytes(static_cast<size_t>(size));
        file.seekg(0);
        if (!file.read(bytes.data(), size) && size > 0)
            throw std::invalid_argument("it cannot be read");
        return made(std::move(bytes));
    });
}

dm_model* dm_model_load_bytes(const void* bytes, size_t size, char* error, size_t error_size) {
    return guarded(error, error_size, "loading a model", nullptr, [&]() -> dm_model* {
        if (bytes == nullptr) throw std::invalid_argument("no bytes");
        const char* first = static_cast<const char*>(bytes);
        return made(std::vector<char>(first, first + size));
    });
}

void dm_model_free(dm_model* model) { delete model; }

int64_t dm_model_n_features(const dm_model* model) { return model->file.view().columns.n_features; }
int64_t dm_model_n_outputs(const dm_model* model) { return model->file.view().output.n; }
int64_t dm_model_n_trees(const dm_model* model) { return model->file.view().trees.n; }
const char* dm_model_describe(const dm_model* model) { return model->file.about().c_str(); }

int dm_model_margin(const dm_model* model, const double* x, int64_t n_rows, double* out,
                    int n_threads, char* error, size_t error_size) {
    return margin(model, x, n_rows, out, n_threads, error, error_size);
}

int dm_model_margin_f32(const dm_model* model, const float* x, int64_t n_rows, double* out,
                        int n_threads, char* error, size_t error_size) {
    return margin(model, x, n_rows, out, n_threads, error, error_size);
}

int dm_model_apply(const dm_model* model, const double* x, int64_t n_rows, int32_t* out,
                   int n_threads, char* error, size_t error_size) {
    return guarded(error, error_size, "finding exit leaves", -1, [&] {
        const Source source = rows_of(model, x, n_rows);
        if (n_rows > 0 && out == nullptr) throw std::invalid_argument("no room for the leaves");
        if (n_rows > 0) model->engine_for(n_rows).apply(source, threads_of(n_threads, n_rows), out);
        return 0;
    });
}
}
