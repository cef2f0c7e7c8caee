use retryjob_core::{Backend, ErrorKind, op::due::Lane};

use crate::{
    SqlDatabase,
    act::{claim, enqueue},
    jobs::{MAIL, mail},
};

pub async fn table_with_faults_is_refused_with_each_of_them_named<D: SqlDatabase>(db: D) {
    let backend = db.installed(&MAIL).await;
    let names = db.spoil(&MAIL).await;
    let before = db.create_sql(&MAIL).await;

    let error = backend.install().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Schema, "{error}");
    let text = error.to_string();
    for name in names {
        assert!(text.contains(&format!("`{name}`")), "`{name}`: {text}");
    }
    for name in ["status", "shard_id", "due_at"] {
        let told = format!("column `{name}`");
        assert!(!text.contains(&told), "{told}: {text}");
    }
    assert_eq!(db.create_sql(&MAIL).await, before);
}

pub async fn further_columns_and_indexes_are_fine<D: SqlDatabase>(db: D) {
    let backend = db.installed(&MAIL).await;
    let table = MAIL.table;
    for sql in [
        format!("ALTER TABLE {table} ADD COLUMN remark VARCHAR(20) NULL"),
        format!("ALTER TABLE {table} ADD COLUMN region INTEGER NOT NULL DEFAULT 7"),
        format!("CREATE INDEX by_region ON {table} (region, id)"),
    ] {
        db.execute(&sql).await;
    }
    let before = db.create_sql(&MAIL).await;
    backend.install().await.unwrap();
    assert_eq!(db.create_sql(&MAIL).await, before);
    enqueue(&backend, vec![mail(1), mail(2)]).await;
    assert_eq!(claim(&backend, Lane::Fresh).await.len(), 2);
}

pub async fn table_of_nodes_with_faults_is_refused<D: SqlDatabase>(db: D) {
    let backend = db.installed(&MAIL).await;
    db.execute("DROP TABLE retryjob_node").await;
    db.execute("CREATE TABLE retryjob_node (job_table INTEGER NOT NULL PRIMARY KEY)")
        .await;
    let error = backend.install().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Schema, "{error}");
    let text = error.to_string();
    assert!(text.contains("`retryjob_node`"), "{text}");
    for name in ["job_table", "node", "member_until"] {
        assert!(text.contains(&format!("column `{name}`")), "{name}: {text}");
    }
    assert!(text.contains("(job_table, node)"), "{text}");
}
