// Enums are no jobs.
#[retry_job(table = "a")]
enum Enum {
    Variant,
}

// Nor are unions.
#[retry_job(table = "a")]
union Union {
    field: u8,
}

// Nor tuple structs.
#[retry_job(table = "a")]
struct Tuple(u8, u8);

// Nor unit structs.
#[retry_job(table = "a")]
struct Unit;

// A job is one table.
#[retry_job(table = "a")]
struct Generic<'a, T, const N: usize> {
    field: Vec<T>,
}

// Without a field there is nothing to do.
#[retry_job(table = "a")]
struct Empty {}

// All fields skipped is no better.
#[retry_job(table = "a")]
struct Skipped {
    #[job(skip)]
    field: u8,
}

// The table is the one option that must be there.
struct NightlyReconciliationRun {
    field: u8,
}

// Attributes of the wrong place.
#[job(unique)]
#[retry_job(table = "a", unique, max_attempts = 3)]
struct Misplaced {
    #[retry_job(table = "a")]
    #[job(table = "a", retry(fixed = "1s"), jitter = "1s", type = "TEXT")]
    field: u8,
}

// Attributes that say nothing.
#[retry_job]
struct Bare {
    #[job]
    field: u8,
    #[job()]
    other: u8,
}

// Attributes of another form.
#[retry_job = "a"]
struct NameValue {
    #[job = "unique"]
    field: u8,
}

// What can't be read is reported as it is, and no missing table on top.
#[retry_job(table = "a" shards = 4)]
struct Unreadable {
    #[job(unique; column)]
    field: u8,
}

// Names that nothing has.
#[retry_job(table = "a", shard = 4, x = 1, prio = 2)]
struct Unknown {
    #[job(uniqe)]
    field: u8,
    #[job(primary_key)]
    other: u8,
}

// Everything twice.
#[retry_job(table = "a", table = "b", shards = 2, retry(fixed = "1s", fixed = "2s"))]
#[retry_job(shards = 4)]
struct Twice {
    #[job(unique, unique)]
    field: u8,
    #[job(column)]
    #[job(column)]
    other: u8,
}

// The struct's serde attributes that would change the payload.
#[retry_job(table = "a")]
#[serde(rename_all = "camelCase", default, tag = "type")]
#[serde(transparent)]
struct Serde {
    field: u8,
}

// Several mistakes of several steps are reported in one build.
#[retry_job(tabel = "a", shards = 0, lease = "5 minutes", shard_key_column = "select")]
struct Several {
    #[job(index)]
    field: u8,
    #[job(skip, unique)]
    other: &'static str,
}
