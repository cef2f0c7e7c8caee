// What is skipped is nothing else.
#[retry_job(table = "a")]
struct Skip {
    field: u8,
    #[job(skip, shard_by, unique, column, index)]
    other: u8,
}

// An index is over a column.
#[retry_job(table = "a")]
struct Index {
    #[job(index)]
    field: u8,
}

// Bytes of an index.
#[retry_job(table = "a")]
struct IndexBytes {
    #[job(index, column(type = "TEXT"))]
    text: String,
    #[job(index, column(type = "VARCHAR(768)"))]
    longest: String,
    #[job(index, column(type = "VARCHAR(769)"))]
    long: String,
    #[job(index, column(type = "VARBINARY(3073)"))]
    bytes: Vec<u8>,
}

// Types that databases have and this has not.
#[retry_job(table = "a")]
struct Types {
    #[job(column(type = "DECIMAL(10,2)"))]
    a: u8,
    #[job(column(type = "bool"))]
    b: bool,
    #[job(column(type = "VARCHAR"))]
    c: String,
    #[job(column(type = "VARCHAR(16384)"))]
    d: String,
    #[job(column(type = "BINARY(256)"))]
    e: Vec<u8>,
    #[job(column(type = "DATETIME"))]
    f: String,
    #[job(column(type = "BIGINT(20)"))]
    g: i64,
    #[job(column(kind = "TEXT", length = 64, unique))]
    h: String,
}

// A key must be the same on every computer.
#[retry_job(table = "a")]
struct Floats {
    #[job(unique)]
    a: f64,
    #[job(shard_by)]
    b: Option<f32>,
}

// A row outlives what a field borrows.
#[retry_job(table = "a")]
struct Borrowed {
    #[job(column)]
    a: &'static str,
    b: &'static [u8],
    #[job(skip)]
    c: &'static str,
}

// Rust types that no database has.
#[retry_job(table = "a")]
struct NoColumns {
    #[job(column)]
    a: f32,
    #[job(column)]
    b: Option<std::primitive::usize>,
    #[job(column)]
    c: isize,
    #[job(column)]
    d: u128,
    #[job(column)]
    e: i128,
    #[job(column)]
    f: char,
}
