//! How the server would run a claim.

use retryjob_core::{
    op::{doctor::Finding, due::Lane},
    sql::Statement,
};
use sqlx::{AssertSqlSafe, Column as _, MySqlConnection, Row as _, mysql::MySqlRow};

use super::{Seen, answered, server::is_mariadb, text};
use crate::{fault::Fault, kind::Ask, op::doctor::some_pick};

/// The claim of each lane, when there is a table to claim from.
pub(super) async fn examine(
    session: &mut MySqlConnection,
    ask: &Ask<'_>,
    settings: &Seen,
) -> Result<Vec<Finding>, Fault> {
    if !ask.has_job_table() {
        return Ok(Vec::new());
    }
    let explain = match is_mariadb(settings) {
        // It has no other, and does not know the word.
        true => "EXPLAIN",
        // The default of 9.x is a tree.
        false => "EXPLAIN FORMAT=TRADITIONAL",
    };
    let mut findings = Vec::new();
    for lane in [Lane::Fresh, Lane::Retry] {
        let pick = ask.catalogue.pick.of(lane);
        let plan = plan(session, explain, pick).await?;
        findings.push(judge(&subject(lane), ask.claim_index(), plan));
    }
    Ok(findings)
}

fn subject(lane: Lane) -> String {
    format!("plan of a {} claim", format!("{lane:?}").to_lowercase())
}

/// One line of a plan: access type, index, remarks.
#[derive(Debug, PartialEq)]
struct Plan {
    kind: String,
    key: String,
    extra: String,
}

async fn plan(
    session: &mut MySqlConnection,
    explain: &str,
    pick: &Statement,
) -> Result<Result<Vec<Plan>, String>, Fault> {
    let sql = AssertSqlSafe(format!("{explain} {}", pick.sql()));
    let values = pick.values(some_pick);
    let slots = pick.binds().iter().map(|bind| bind.slot);
    let query = slots
        .zip(values)
        .fold(sqlx::query(sql), crate::mysql::session::bind);
    let rows = answered(query.persistent(false).fetch_all(session).await)?;
    let line = |row: &MySqlRow| Plan {
        kind: named(row, "type"),
        key: named(row, "key"),
        extra: named(row, "Extra"),
    };
    Ok(rows.map(|rows| rows.iter().map(line).collect()))
}

fn named(row: &MySqlRow, name: &str) -> String {
    let at = row
        .columns()
        .iter()
        .position(|column| column.name() == name);
    at.map_or_else(String::new, |at| text(row, at))
}

/// By the claim index, in its order: any other plan locks rows that it does
/// not take.
fn judge(subject: &str, index: &str, plan: Result<Vec<Plan>, String>) -> Finding {
    let plan = match plan {
        Ok(plan) => plan,
        // 1176: FORCE INDEX names an index that is not there.
        Err(refused) if refused.contains(index) && refused.contains("doesn't exist") => {
            return Finding::fault(subject, refused, "no claim can run; create the index");
        }
        Err(refused) => return Finding::unknown(subject, refused),
    };
    let [Plan { kind, key, extra }] = plan.as_slice() else {
        return Finding::unknown(subject, format!("a plan of {} lines", plan.len()));
    };
    let value = format!(
        "{kind} by {}; {extra}",
        if key.is_empty() { "no index" } else { key }
    );
    let bad = ["filesort", "temporary"];
    let is_ordered = !bad.iter().any(|bad| extra.contains(bad));
    let is_narrow = ["range", "ref"].contains(&kind.as_str());
    if key == index && is_ordered && is_narrow {
        return Finding::ok(subject, value);
    }
    Finding::fault(
        subject,
        value,
        format!(
            "expected a range of index `{index}` without filesort: otherwise a claim locks every \
             due row, and other workers find none"
        ),
    )
}

#[cfg(test)]
mod tests {
    use retryjob_core::op::doctor::{Level, UNKNOWN};

    use super::*;

    fn level(kind: &str, key: &str, extra: &str) -> Level {
        let line = Plan {
            kind: kind.into(),
            key: key.into(),
            extra: extra.into(),
        };
        judge("plan", "claim", Ok(vec![line])).level
    }

    #[test]
    fn a_claim_off_the_front_of_its_index_is_fine() {
        assert_eq!(level("range", "claim", "Using index condition"), Level::Ok);
        assert_eq!(level("ref", "claim", "Using where"), Level::Ok);
    }

    #[test]
    fn a_claim_that_sorts_or_reads_the_whole_table_is_a_fault() {
        for (kind, key, extra) in [
            ("range", "claim", "Using index condition; Using filesort"),
            ("range", "claim", "Using temporary"),
            ("ALL", "", "Using where"),
            ("index", "claim", ""),
            ("range", "lease", "Using where"),
        ] {
            assert_eq!(
                level(kind, key, extra),
                Level::Fault,
                "{kind} {key} {extra}"
            );
        }
    }

    #[test]
    fn a_missing_index_is_a_fault_and_other_refusals_are_unknown() {
        let missing = "Key 'claim' doesn't exist in table 'job'";
        let judge = |refused: &str| judge("plan", "claim", Err(refused.to_owned()));
        assert_eq!(judge(missing).level, Level::Fault);
        assert_eq!(judge("SELECT command denied to user").value, UNKNOWN);
    }
}
