"""The stream room: files and clusters of data through a machine.

Data of any size is read batch by batch, scored by the `run` room, and written to files that
appear when they are complete. `score` does it for files, here, on Dask, Ray or Spark; the other
functions put a machine into pipelines of the user's own: Arrow, pandas, polars, Dask, DuckDB, Ray
and Spark.

`parts` finds the files, `batches` reads them, `features` matches columns, `answers` asks the
machine, `work` does all this for one file, `sinks` writes, `records` remembers what is finished.
"""

from __future__ import annotations

from .dask_cluster import dask_frame
from .duckdb_udf import duckdb_function
from .functions import arrow_function, expr, pandas_function
from .ray_cluster import ray_dataset
from .score import Report, score
from .spark_cluster import spark_frame

__all__ = [
    "Report",
    "arrow_function",
    "dask_frame",
    "duckdb_function",
    "expr",
    "pandas_function",
    "ray_dataset",
    "score",
    "spark_frame",
]
