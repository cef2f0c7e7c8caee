//! How the tables are stored, and which of their indexes are read.

use retryjob_core::op::doctor::Finding;
use sqlx::{MySqlConnection, mysql::MySqlRow};

use super::{answered, text};
use crate::{fault::Fault, kind::Ask};

/// Each cast to text: their own types differ from server to server.
const STORED: &str = "SELECT CAST(ENGINE AS CHAR), CAST(ROW_FORMAT AS CHAR) \
    FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?";

/// What `sys.schema_unused_indexes` reads as well.
const READS: &str = "SELECT CAST(INDEX_NAME AS CHAR), CAST(COUNT_READ AS CHAR) \
    FROM performance_schema.table_io_waits_summary_by_index_usage \
    WHERE OBJECT_SCHEMA = DATABASE() AND OBJECT_NAME = ? AND INDEX_NAME IS NOT NULL \
    ORDER BY INDEX_NAME";

pub(super) async fn examine(
    session: &mut MySqlConnection,
    ask: &Ask<'_>,
    is_counting: bool,
) -> Result<Vec<Finding>, Fault> {
    let mut findings = Vec::new();
    for table in &ask.tables {
        let stored = read(session, STORED, table).await?;
        let stored = stored.ok().and_then(|mut rows| rows.pop());
        findings.extend(judge_stored(table, stored));
    }
    if !ask.has_job_table() {
        return Ok(findings);
    }
    let reads = match is_counting {
        true => read(session, READS, ask.schema.table.as_str())
            .await?
            .map_err(|why| format!("{why}; grant SELECT on `performance_schema`")),
        false => Err("the server runs without `performance_schema`".to_owned()),
    };
    let wanted = ask.catalogue.tables.first();
    let wanted: Vec<&str> = wanted
        .iter()
        .flat_map(|table| &table.indexes)
        .map(|index| index.name.as_str())
        .collect();
    findings.push(judge_reads(&wanted, reads));
    Ok(findings)
}

/// Two columns of the rows of a table.
async fn read(
    session: &mut MySqlConnection,
    sql: &'static str,
    table: &str,
) -> Result<Result<Vec<(String, String)>, String>, Fault> {
    let query = sqlx::query(sql).bind(table.to_owned()).persistent(false);
    let rows = answered(query.fetch_all(session).await)?;
    let pair = |row: &MySqlRow| (text(row, 0), text(row, 1));
    Ok(rows.map(|rows| rows.iter().map(pair).collect()))
}

/// Engine and row format. Another engine than InnoDB is told with the table's
/// differences.
fn judge_stored(table: &str, stored: Option<(String, String)>) -> Option<Finding> {
    let subject = format!("storage of {table}");
    let Some((engine, format)) = stored else {
        return Some(Finding::unknown(subject, "the server does not show it"));
    };
    if !engine.eq_ignore_ascii_case("InnoDB") {
        return None;
    }
    let value = format!("{engine}, {format}");
    let is_roomy = ["Dynamic", "Compressed"]
        .iter()
        .any(|roomy| format.eq_ignore_ascii_case(roomy));
    if is_roomy {
        return Some(Finding::ok(subject, value));
    }
    Some(Finding::warning(
        subject,
        value,
        "an index entry has 767 bytes at most in this row format; ROW_FORMAT=DYNAMIC allows 3072",
    ))
}

/// How often each index was read since the server started, and which of them
/// were not.
fn judge_reads(wanted: &[&str], reads: Result<Vec<(String, String)>, String>) -> Finding {
    let subject = "reads by index";
    let reads = match reads {
        Ok(reads) if !reads.is_empty() => reads,
        Ok(_) => return Finding::unknown(subject, "the server has not counted any for this table"),
        Err(why) => {
            return Finding::unknown(subject, format!("which are unused can't be told: {why}"));
        }
    };
    let shown = reads.iter().map(|(name, count)| format!("{name} {count}"));
    let value = shown.collect::<Vec<_>>().join(", ");
    let is_unused = |(name, count): &&(String, String)| {
        count == "0" && name != "PRIMARY" && !wanted.iter().any(|want| want == name)
    };
    let unused: Vec<_> = reads
        .iter()
        .filter(is_unused)
        .map(|(name, _)| name.as_str())
        .collect();
    if unused.is_empty() {
        return Finding::note(subject, value, "since the server started");
    }
    let advice = format!(
        "not read since the server started and not the job type's: {}",
        unused.join(", ")
    );
    Finding::warning(subject, value, advice)
}

#[cfg(test)]
mod tests {
    use retryjob_core::op::doctor::{Level, UNKNOWN};

    use super::*;

    #[test]
    fn a_row_format_with_short_index_entries_is_worth_a_change() {
        let judge = |engine: &str, format: &str| {
            judge_stored("job", Some((engine.to_owned(), format.to_owned())))
        };
        for (format, level) in [
            ("Dynamic", Level::Ok),
            ("Compressed", Level::Ok),
            ("Compact", Level::Warning),
            ("Redundant", Level::Warning),
        ] {
            assert_eq!(judge("InnoDB", format).unwrap().level, level, "{format}");
        }
        assert_eq!(judge("MyISAM", "Dynamic"), None);
        assert_eq!(judge_stored("job", None).unwrap().value, UNKNOWN);
    }

    fn counts<const N: usize>(all: [(&str, &str); N]) -> Result<Vec<(String, String)>, String> {
        Ok(all.map(|(n, c)| (n.to_owned(), c.to_owned())).into())
    }

    #[test]
    fn indexes_that_nobody_reads_are_worth_a_change_unless_they_are_the_job_types() {
        let wanted = ["claim", "lease"];
        let finding = judge_reads(&wanted, counts([("claim", "0"), ("mine", "3")]));
        assert_eq!(
            (finding.level, finding.value.as_str()),
            (Level::Ok, "claim 0, mine 3")
        );
        let finding = judge_reads(&wanted, counts([("PRIMARY", "0"), ("mine", "0")]));
        assert_eq!(finding.level, Level::Warning);
        assert!(finding.advice.ends_with(": mine"), "{}", finding.advice);
    }

    #[test]
    fn reads_that_are_not_counted_or_not_shown_are_unknown() {
        for reads in [counts([]), Err("SELECT command denied".into())] {
            let finding = judge_reads(&["claim"], reads);
            assert_eq!(
                (finding.value.as_str(), finding.level),
                (UNKNOWN, Level::Warning)
            );
        }
    }
}
