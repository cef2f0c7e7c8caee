// A database belongs in the URL.
#[retry_job(table = "billing.job")]
struct Database {
    field: u8,
}

// The allow-list.
#[retry_job(table = "")]
struct Empty {
    field: u8,
}
#[retry_job(table = "1job")]
struct Digit {
    field: u8,
}
#[retry_job(table = "a`; DROP TABLE x; --")]
struct Injection {
    field: u8,
}
#[retry_job(table = "jobs_with_a_name_that_is_57_bytes_long_which_is_one_more_")]
struct LongTable {
    field: u8,
}

// SQLite keeps a prefix, InnoDB a few columns.
#[retry_job(table = "SQLite_job")]
struct Reserved {
    #[job(column)]
    db_row_id: u8,
    #[job(column(name = "DB_TRX_ID"))]
    field: u8,
}

// A column's name has 64 bytes, and it may be the field's.
#[retry_job(table = "a")]
struct LongColumn {
    #[job(column)]
    a_field_with_a_name_that_is_65_bytes_long_which_is_one_more_than_: u8,
    #[job(column)]
    größe: u8,
    #[job(column(name = "order-no"))]
    order_no: u8,
}

// Columns of the framework that do not exist.
#[retry_job(table = "a", columns(next_atempt_at = "b", worker = "c"))]
struct UnknownColumns {
    field: u8,
}

// Renaming that changes nothing.
#[retry_job(table = "a", columns(id = "id", payload = "body"))]
struct NoRename {
    #[job(column(name = "field"))]
    field: u8,
}

// Renaming twice, and to one name.
#[retry_job(table = "a", columns(id = "b", id = "c", due_at = "B", status = "shard_id"))]
struct Renamed {
    field: u8,
}

// Two columns of one name; case does not count.
#[retry_job(
    table = "a",
    columns(next_attempt_at = "next_at"),
    shard_key = "{first}",
    shard_key_column = "key"
)]
struct Clashes {
    #[job(column)]
    status: u8,
    #[job(column(name = "LEASE_SEQ"))]
    sequence: u8,
    #[job(column)]
    next_at: u8,
    #[job(column)]
    key: u8,
    #[job(column)]
    first: u8,
    #[job(column(name = "First"))]
    second: u8,
}

// The column of the shard key counts as well.
#[retry_job(table = "a", shard_key = "{field}", shard_key_column = "Payload")]
struct ShardKeyColumn {
    field: u8,
}
