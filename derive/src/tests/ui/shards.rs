// A template or fields, not both.
#[retry_job(table = "a", shard_key = "{field}")]
struct Both {
    #[job(shard_by)]
    field: u8,
}

// A column of the shard key needs one.
#[retry_job(table = "a", shard_key_column = "shard_key")]
struct NoKey {
    field: u8,
}

// One shard leaves nothing to choose.
#[retry_job(table = "a", shards = 1)]
struct OneByField {
    #[job(shard_by)]
    field: u8,
}
#[retry_job(table = "a", shards = 1, shard_key = "{field}")]
struct OneByKey {
    field: u8,
}

// Fields of the template.
#[retry_job(table = "a", shard_key = "{carier}_{date}_{zone}")]
struct UnknownField {
    carrier: u8,
    #[job(skip)]
    date: u8,
}

#[retry_job(table = "a", shard_key = "{zone}")]
struct OneField {
    carrier: u8,
}
#[retry_job(table = "a", shard_key = "{zone}")]
struct NoFields {}

// The grammar of the template.
#[retry_job(table = "a", shard_key = "{field")]
struct Unclosed {
    field: u8,
}
#[retry_job(table = "a", shard_key = "field}")]
struct Unopened {
    field: u8,
}
#[retry_job(table = "a", shard_key = "{self.field}")]
struct NotAField {
    field: u8,
}
#[retry_job(table = "a", shard_key = "{{field}}")]
struct NoField {
    field: u8,
}

// Formats, on which chrono would panic.
#[retry_job(table = "a", shard_key = "{field:%Q}")]
struct Conversion {
    field: u8,
}
#[retry_job(table = "a", shard_key = "{field:day}")]
struct NoConversion {
    field: u8,
}
