//! Every attribute name, once, each with the form it is written in.

/// A closed set of names that mean something in one place.
pub(crate) trait Name: Copy + PartialEq + 'static {
    /// What one of them is called in a message.
    const NOUN: &'static str;
    /// All of them, in the order of the documentation.
    const ALL: &'static [Self];

    /// The name as users write it.
    fn as_str(self) -> &'static str;

    /// The name with a value it could have.
    fn form(self) -> &'static str;

    /// The one with this name.
    fn find(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|name| name.as_str() == text)
    }

    /// The form with the value left out: `lease = ...`, `retry(...)`.
    fn outline(self) -> String {
        let form = self.form();
        match form.find(['=', '(']) {
            Some(at) if form[at..].starts_with('=') => format!("{} = ...", self.as_str()),
            Some(_) => format!("{}(...)", self.as_str()),
            None => form.to_owned(),
        }
    }
}

macro_rules! names {
    (
        $(#[$doc:meta])*
        $enum:ident: $noun:literal {
            $($variant:ident $name:literal $form:literal,)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $enum {
            $($variant,)+
        }

        impl Name for $enum {
            const NOUN: &'static str = $noun;
            const ALL: &'static [Self] = &[$(Self::$variant,)+];

            fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            fn form(self) -> &'static str {
                match self {
                    $(Self::$variant => $form,)+
                }
            }
        }
    };
}

/// The attribute on the struct.
pub(crate) const STRUCT_ATTRIBUTE: &str = "retry_job";

/// The attribute on a field.
pub(crate) const FIELD_ATTRIBUTE: &str = "job";

names! {
    /// What `#[retry_job(...)]` takes.
    JobOption: "job attribute" {
        Table "table" r#"table = "billing_job""#,
        Shards "shards" "shards = 16",
        ShardKey "shard_key" r#"shard_key = "{carrier}_{date:%Y%m%d}""#,
        ShardKeyColumn "shard_key_column" r#"shard_key_column = "shard_key""#,
        Lease "lease" r#"lease = "5m""#,
        Timeout "timeout" r#"timeout = "30s""#,
        Retry "retry" r#"retry(exponential = "1s")"#,
        Lanes "lanes" "lanes(fresh = 3, retry = 1)",
        Batch "batch" "batch = 100",
        Spread "spread" r#"spread = "1h""#,
        Finished "finished" r#"finished = "history""#,
        LeaseBy "lease_by" r#"lease_by = "shard""#,
        Columns "columns" r#"columns(next_attempt_at = "trigger_next_time")"#,
    }
}

names! {
    /// What `retry(...)` takes.
    RetryOption: "retry attribute" {
        Fixed "fixed" r#"fixed = "10s""#,
        Linear "linear" r#"linear = "10s""#,
        Exponential "exponential" r#"exponential = "1s""#,
        Schedule "schedule" r#"schedule = ["5m", "30m", "2h"]"#,
        Graded "graded" r#"graded(first = "1s", then = "1m")"#,
        Factor "factor" "factor = 2",
        Cap "cap" r#"cap = "1h""#,
        Jitter "jitter" r#"jitter = "30s""#,
        MaxAttempts "max_attempts" "max_attempts = 10",
        Grace "grace" r#"grace = "7d""#,
        ManualAfter "manual_after" "manual_after = 4",
    }
}

names! {
    /// What `graded(...)` takes.
    GradedOption: "graded attribute" {
        First "first" r#"first = "1s""#,
        Then "then" r#"then = "1m""#,
        Factor "factor" "factor = 2",
    }
}

names! {
    /// What `lanes(...)` takes.
    LaneOption: "lane" {
        Fresh "fresh" "fresh = 3",
        Retry "retry" "retry = 1",
    }
}

names! {
    /// What `finished` can be.
    FinishedName: "value of `finished`" {
        Keep "keep" r#"finished = "keep""#,
        History "history" r#"finished = "history""#,
        Delete "delete" r#"finished = "delete""#,
    }
}

names! {
    /// What `lease_by` can be.
    LeaseByName: "value of `lease_by`" {
        Row "row" r#"lease_by = "row""#,
        Shard "shard" r#"lease_by = "shard""#,
    }
}

names! {
    /// The framework's own columns, which `columns(...)` renames.
    OwnColumn: "framework column" {
        Id "id" r#"id = "job_id""#,
        ShardId "shard_id" r#"shard_id = "bucket""#,
        Status "status" r#"status = "state""#,
        NextAttemptAt "next_attempt_at" r#"next_attempt_at = "trigger_next_time""#,
        DueAt "due_at" r#"due_at = "first_due_at""#,
        AttemptNo "attempt_no" r#"attempt_no = "retry_count""#,
        LeaseOwner "lease_owner" r#"lease_owner = "locked_by""#,
        LeaseSeq "lease_seq" r#"lease_seq = "fence""#,
        LeaseUntil "lease_until" r#"lease_until = "locked_until""#,
        IdempotencyKey "idempotency_key" r#"idempotency_key = "request_key""#,
        Payload "payload" r#"payload = "body""#,
        LastError "last_error" r#"last_error = "error_text""#,
        CreatedAt "created_at" r#"created_at = "create_time""#,
        UpdatedAt "updated_at" r#"updated_at = "update_time""#,
    }
}

names! {
    /// What `#[job(...)]` takes.
    FieldOption: "field attribute" {
        ShardBy "shard_by" "shard_by",
        Unique "unique" "unique",
        Column "column" "column",
        Index "index" "index",
        Skip "skip" "skip",
    }
}

names! {
    /// What `column(...)` takes.
    ColumnOption: "column attribute" {
        Name "name" r#"name = "account_no""#,
        Type "type" r#"type = "VARCHAR(64)""#,
    }
}

names! {
    /// The SQL types that a column can be given.
    TypeName: "column type" {
        Boolean "BOOLEAN" "BOOLEAN",
        TinyInt "TINYINT" "TINYINT",
        SmallInt "SMALLINT" "SMALLINT",
        Int "INT" "INT",
        BigInt "BIGINT" "BIGINT",
        Double "DOUBLE" "DOUBLE",
        Varchar "VARCHAR" "VARCHAR(64)",
        Text "TEXT" "TEXT",
        Binary "BINARY" "BINARY(16)",
        Varbinary "VARBINARY" "VARBINARY(64)",
        Date "DATE" "DATE",
        DateTime "DATETIME" "DATETIME(6)",
    }
}

impl RetryOption {
    /// The kinds of delay, of which `retry(...)` has one.
    pub(crate) const KINDS: [Self; 5] = [
        Self::Fixed,
        Self::Linear,
        Self::Exponential,
        Self::Schedule,
        Self::Graded,
    ];
}

/// Where a name belongs that is unknown where it stands.
pub(crate) fn home_of(name: &str) -> Option<String> {
    let on_struct = |name: JobOption| {
        let outline = name.outline();
        format!("`#[{STRUCT_ATTRIBUTE}({outline})]` belongs on the struct")
    };
    let on_field = |name: FieldOption| {
        let outline = name.outline();
        format!("`#[{FIELD_ATTRIBUTE}({outline})]` belongs on a field")
    };
    let in_retry = |name: RetryOption| format!("`{}` belongs in `retry(...)`", name.outline());
    let in_column = |name: ColumnOption| format!("`{}` belongs in `column(...)`", name.outline());
    JobOption::find(name)
        .map(on_struct)
        .or_else(|| FieldOption::find(name).map(on_field))
        .or_else(|| RetryOption::find(name).map(in_retry))
        .or_else(|| ColumnOption::find(name).map(in_column))
}
