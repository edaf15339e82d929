// Python's door to tables of statistics: check shapes, release the GIL, call.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "common/arrays.hpp"
#include "common/require.hpp"
#include "look_ups/look_ups.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dm::look_ups {
namespace {

using common::In;
using common::Out;
using common::require;

// Callers have proven that the arrays fit together (decision_machines.machine.look_ups); `input`
// is the row of x that each term reads.
Tables make(int64_t n_inputs, In<int32_t, 1> column_table, In<int32_t, 1> column_statistic,
            In<int64_t, 1> term_start, In<int32_t, 1> input, In<uint8_t, 1> kind,
            In<float, 1> number, In<uint8_t, 1> missing, In<uint64_t, 1> adds,
            In<int64_t, 1> label_start, In<uint64_t, 1> label_adds, In<int64_t, 1> key_start,
            In<uint64_t, 1> keys, In<int32_t, 1> n_statistics, In<float, 1> values) {
    Tables found{n_inputs,
                 static_cast<int64_t>(column_table.shape(0)),
                 {},
                 std::vector<bool>(n_inputs, false)};
    const int64_t n_tables = static_cast<int64_t>(n_statistics.shape(0));
    int64_t value = 0;
    for (int64_t i = 0; i < n_tables; ++i) {
        Table table;
        table.n_statistics = n_statistics(i);
        for (int64_t j = term_start(i); j < term_start(i + 1); ++j) {
            require(0 <= input(j) && input(j) < n_inputs, "a term of a row that is not there");
            if (static_cast<Ask>(kind(j)) == Ask::label) found.has_labels[input(j)] = true;
            table.terms.push_back(
                {input(j),
                 static_cast<Ask>(kind(j)),
                 number(j),
                 missing(j) != 0,
                 adds(j),
                 {label_adds.data() + label_start(j), label_adds.data() + label_start(j + 1)}});
        }
        const int64_t n_keys = key_start(i + 1) - key_start(i);
        require(n_keys < (int64_t{1} << 31), "a table of more than 2**31 keys");
        const int64_t n_values = (n_keys + 1) * table.n_statistics;
        require(value + n_values <= static_cast<int64_t>(values.shape(0)), "too few values");
        table.values.assign(values.data() + value, values.data() + value + n_values);
        value += n_values;
        table.hold(keys.data() + key_start(i), n_keys);
        found.tables.push_back(std::move(table));
    }
    for (int64_t c = 0; c < found.n_outputs; ++c) {
        require(0 <= column_table(c) && column_table(c) < n_tables, "a column of no table");
        found.tables[column_table(c)].columns.push_back({column_statistic(c), c});
    }
    for (Table& table : found.tables) table.list_combinations();
    return found;
}

void read(const Tables& tables, In<float, 2> x, Out<float, 2> z, int64_t n_threads) {
    require(static_cast<int64_t>(x.shape(0)) == tables.n_inputs, "x has another number of inputs");
    require(static_cast<int64_t>(z.shape(0)) == tables.n_outputs && z.shape(1) == x.shape(1),
            "z has the wrong shape");
    require(n_threads >= 1, "n_threads must be at least 1");
    nb::gil_scoped_release release;
    tables.read(x.data(), static_cast<int64_t>(x.shape(1)), n_threads, z.data());
}

}  // namespace

void bind(nb::module_& m) {
    nb::class_<Tables>(m, "LookUpTables", "Tables of statistics, ready to be looked up.")
        .def("read", &read, "x"_a, "z"_a, "n_threads"_a,
             "Statistics of each row: x holds a row for each input, z one for each column.");
    m.def("look_up_tables", &make, "n_inputs"_a, "column_table"_a, "column_statistic"_a,
          "term_start"_a, "input"_a, "kind"_a, "number"_a, "missing"_a, "adds"_a, "label_start"_a,
          "label_adds"_a, "key_start"_a, "keys"_a, "n_statistics"_a, "values"_a,
          "The tables of a machine's look-up columns.");
}

}  // namespace dm::look_ups
