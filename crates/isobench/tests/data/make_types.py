"""Writes types.parquet, a file of every column type, with pyarrow (26.0.1 wrote the one that is kept)."""

import datetime
import sys

import pyarrow as pa
import pyarrow.parquet as pq

UTC = datetime.timezone.utc
SCHEMA = pa.schema(
    [
        ("commit_hash", pa.string()),
        ("repo", pa.string()),
        ("large", pa.large_string()),
        ("flag", pa.bool_()),
        ("i8", pa.int8()),
        ("i16", pa.int16()),
        ("i32", pa.int32()),
        ("i64", pa.int64()),
        ("u32", pa.uint32()),
        ("u64", pa.uint64()),
        ("f32", pa.float32()),
        ("f64", pa.float64()),
        ("day", pa.date32()),
        ("millis", pa.timestamp("ms", tz="UTC")),
        ("micros", pa.timestamp("us")),
        ("nanos", pa.timestamp("ns")),
        ("bytes", pa.binary()),
        ("list", pa.list_(pa.string())),
        ("struct", pa.struct([("x", pa.int64()), ("y", pa.list_(pa.struct([("z", pa.float64())])))])),
        ("map", pa.map_(pa.string(), pa.int64())),
    ]
)
ROW = {
    "commit_hash": "a" * 40,
    "repo": "vllm-project/vllm",
    "large": "l",
    "flag": True,
    "i8": -8,
    "i16": -16,
    "i32": -32,
    "i64": -(2**63),
    "u32": 2**32 - 1,
    "u64": 2**64 - 1,
    "f32": 0.5,
    "f64": 0.1,
    "day": datetime.date(2026, 1, 2),
    "millis": datetime.datetime(2026, 1, 2, 3, 4, 5, 678000, UTC),
    "micros": datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
    "nanos": 1_767_323_045_000_000_001,
    "bytes": b"\x00\xff",
    "list": ["a", None],
    "struct": {"x": 1, "y": [{"z": 0.25}]},
    "map": [("k", 1), ("l", None)],
}
EMPTY = dict.fromkeys(ROW) | {"commit_hash": "b" * 40, "repo": "vllm-project/vllm", "list": [], "map": []}

pq.write_table(pa.Table.from_pylist([ROW, EMPTY], SCHEMA), sys.argv[1], compression="zstd")
