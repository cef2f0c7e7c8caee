// Values of the wrong kind.
#[retry_job(table = 1, shards = "16", lease = 5, retry = "1s", lanes, batch(500), finished = keep)]
struct WrongKind {
    #[job(unique = true, column = "name")]
    field: u8,
    #[job(column(name = 1, type = VARCHAR))]
    other: u8,
}

// Flags and empty lists where there must be values.
#[retry_job(table, shards, shard_key, timeout(), retry(), lanes(), columns())]
struct Missing {
    #[job(column())]
    field: u8,
}

// Numbers out of their bounds.
#[retry_job(table = "a", shards = 4097, batch = 0, lanes(fresh = 0, retry = 1001))]
struct Numbers {
    field: u8,
}

// Other numbers.
#[retry_job(table = "a", shards = -1, batch = 99999999999999999999)]
struct MoreNumbers {
    field: u8,
}

// A suffix, an expression and a float are no whole numbers.
#[retry_job(table = "a", shards = 16u8, batch = SHARDS, lanes(fresh = 1.5))]
struct NoNumbers {
    field: u8,
}

// Durations that can't be read.
#[retry_job(table = "a", lease = "5", timeout = "5min", spread = "")]
struct NoDurations {
    field: u8,
}

// Durations out of their bounds.
#[retry_job(table = "a", lease = "99ms", timeout = "0s", spread = "99999999999999999999w")]
struct Durations {
    field: u8,
}

// What becomes of finished rows is one of three words.
#[retry_job(table = "a", finished = "archive")]
struct FinishedUnknown {
    field: u8,
}

// Or something close to one.
#[retry_job(table = "a", finished = "deleted")]
struct FinishedClose {
    field: u8,
}
