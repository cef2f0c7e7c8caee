use std::{panic::catch_unwind, time::Duration};

use crate::{
    ident::Ident,
    retry::{Backoff, RetryPolicy},
    schema::{Column, ColumnNames, JobSchema, Lanes},
    shard::SHARDS_MAX,
    value::ColumnType,
};

const PLAIN: JobSchema = JobSchema::new(Ident::new("billing_job"));

const fn column(name: &'static str, kind: ColumnType, index: bool) -> Column {
    Column {
        name: Ident::new(name),
        kind,
        nullable: false,
        index,
    }
}

const fn varchar(chars: u16) -> ColumnType {
    ColumnType::Varchar { chars }
}

fn with_columns(columns: &'static [Column]) -> JobSchema {
    JobSchema { columns, ..PLAIN }
}

#[track_caller]
fn assert_refused(schema: JobSchema, message: &str) {
    let panic = catch_unwind(|| schema.checked()).expect_err("the schema was taken");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&message));
}

#[test]
fn a_struct_without_options_is_fine() {
    assert_eq!(PLAIN.checked(), PLAIN);
}

#[test]
fn shards_are_1_to_4096() {
    for shards in [0, SHARDS_MAX + 1] {
        let schema = JobSchema { shards, ..PLAIN };
        assert_refused(schema, "`shards` must be 1 to 4096");
    }
    for shards in [1, SHARDS_MAX] {
        let _ = JobSchema { shards, ..PLAIN }.checked();
    }
}

#[test]
fn a_batch_is_1_to_1000() {
    for batch in [0, 1001] {
        let schema = JobSchema { batch, ..PLAIN };
        assert_refused(schema, "`batch` must be 1 to 1000");
    }
    for batch in [1, 1000] {
        let _ = JobSchema { batch, ..PLAIN }.checked();
    }
}

#[test]
fn a_lease_is_at_least_100ms() {
    let lease = Duration::from_millis(100);
    let _ = JobSchema { lease, ..PLAIN }.checked();
    let lease = lease - Duration::from_nanos(1);
    let schema = JobSchema { lease, ..PLAIN };
    assert_refused(schema, "`lease` must be at least 100ms");
}

#[test]
fn there_is_at_least_one_attempt() {
    let retry = |max_attempts| JobSchema {
        retry: RetryPolicy {
            max_attempts,
            ..RetryPolicy::DEFAULT
        },
        ..PLAIN
    };
    assert_refused(retry(0), "`max_attempts` must be at least 1");
    let _ = retry(1).checked();
}

#[test]
fn a_person_is_asked_before_the_last_attempt() {
    let retry = |manual_after| JobSchema {
        retry: RetryPolicy {
            max_attempts: 4,
            manual_after: Some(manual_after),
            ..RetryPolicy::DEFAULT
        },
        ..PLAIN
    };
    assert_refused(retry(4), "`manual_after` must be below `max_attempts`");
    let _ = retry(3).checked();
}

#[test]
fn a_schedule_has_at_least_one_delay() {
    let retry = |delays| JobSchema {
        retry: RetryPolicy {
            backoff: Backoff::Schedule { delays },
            ..RetryPolicy::DEFAULT
        },
        ..PLAIN
    };
    assert_refused(retry(&[]), "`schedule` must have at least one delay");
    let _ = retry(&[Duration::ZERO]).checked();
}

#[test]
fn each_lane_has_a_share() {
    for lanes in [Lanes { fresh: 0, retry: 1 }, Lanes { fresh: 1, retry: 0 }] {
        let schema = JobSchema { lanes, ..PLAIN };
        assert_refused(schema, "a lane's share must be at least 1");
    }
}

#[test]
fn the_history_table_has_room_for_its_name() {
    let longest = "a".repeat(56).leak();
    let _ = JobSchema::new(Ident::new(longest)).checked();
    let longer = "a".repeat(57).leak();
    assert_refused(
        JobSchema::new(Ident::new(longer)),
        "the name of a table has at most 56 bytes, since `_history` may follow",
    );
}

#[test]
fn no_job_type_takes_the_table_of_nodes() {
    for name in ["retryjob_node", "RetryJob_Node"] {
        let schema = JobSchema::new(Ident::new(name));
        assert_refused(
            schema,
            "`retryjob_node` is the table of nodes, which all job types share",
        );
    }
}

#[test]
fn each_of_the_frameworks_columns_has_its_own_name() {
    let names = ColumnNames {
        lease_until: Ident::new("STATUS"),
        ..ColumnNames::DEFAULT
    };
    assert_refused(
        JobSchema { names, ..PLAIN },
        "two of the framework's columns have the same name",
    );
    let names = ColumnNames {
        updated_at: Ident::new("created_at"),
        ..ColumnNames::DEFAULT
    };
    assert_refused(
        JobSchema { names, ..PLAIN },
        "two of the framework's columns have the same name",
    );
}

#[test]
fn no_field_takes_the_name_of_a_framework_column() {
    const TAKEN: &[Column] = &[
        column("service_id", ColumnType::U64, false),
        column("Updated_At", ColumnType::DateTime, false),
    ];
    assert_refused(
        with_columns(TAKEN),
        "a field's column has the name of one of the framework's columns",
    );
    let names = ColumnNames {
        updated_at: Ident::new("changed_at"),
        ..ColumnNames::DEFAULT
    };
    let _ = JobSchema {
        names,
        ..with_columns(TAKEN)
    }
    .checked();
}

#[test]
fn each_field_has_its_own_column() {
    const TWICE: &[Column] = &[
        column("memo", ColumnType::Text, false),
        column("service_id", ColumnType::U64, false),
        column("MEMO", ColumnType::Text, false),
    ];
    assert_refused(
        with_columns(TWICE),
        "two fields' columns have the same name",
    );
}

#[test]
fn the_column_of_the_shard_key_has_its_own_name() {
    const FIELD: &[Column] = &[column("Shard_Key", ColumnType::U64, false)];
    let message = "the shard key's column has the name of another column";
    let shard_key_column = |name| Some(Ident::new(name));
    assert_refused(
        JobSchema {
            shard_key_column: shard_key_column("shard_key"),
            ..with_columns(FIELD)
        },
        message,
    );
    assert_refused(
        JobSchema {
            shard_key_column: shard_key_column("shard_id"),
            ..PLAIN
        },
        message,
    );
    let _ = JobSchema {
        shard_key_column: shard_key_column("carrier_day"),
        ..with_columns(FIELD)
    }
    .checked();
}

#[test]
fn an_index_has_at_most_3072_bytes() {
    const LONGEST: &[Column] = &[column("name", varchar(768), true)];
    const LONGER: &[Column] = &[column("name", varchar(769), true)];
    const PLAIN_LONGER: &[Column] = &[column("name", varchar(769), false)];
    let _ = with_columns(LONGEST).checked();
    let _ = with_columns(PLAIN_LONGER).checked();
    assert_refused(
        with_columns(LONGER),
        "an index has at most 3072 bytes, and a character of VARCHAR counts 4; give a shorter `type`",
    );
}

#[test]
fn a_text_has_no_index() {
    const INDEXED: &[Column] = &[column("memo", ColumnType::Text, true)];
    assert_refused(
        with_columns(INDEXED),
        "a TEXT column can't have an index; give `type = \"VARCHAR(n)\"`",
    );
}

#[test]
fn a_row_has_at_most_65535_bytes() {
    const FULL: &[Column] = &[
        column("a", varchar(8_000), false),
        column("b", varchar(8_000), false),
    ];
    const OVER: &[Column] = &[
        column("a", varchar(8_000), false),
        column("b", varchar(8_000), false),
        column("c", varchar(100), false),
    ];
    let _ = with_columns(FULL).checked();
    assert_refused(
        with_columns(OVER),
        "the columns take more than the 65535 bytes of a row; a character of VARCHAR counts 4",
    );
}
