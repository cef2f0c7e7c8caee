//! The conjuncts of a statement's WHERE, and the statement without one.

use std::{collections::BTreeSet, panic::resume_unwind, thread};

use sqlparser::{
    ast::{BinaryOperator, Expr, SetExpr, Statement},
    dialect::{Dialect, MySqlDialect, SQLiteDialect},
    parser::Parser,
};

/// A conjunct of a WHERE.
///
/// A list of groups, `(id = ? AND lease_seq = ?) OR (id = ? AND …)`, has an
/// entry per group: what is dropped there is dropped from each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conjunct {
    /// Which WHERE of a union it is in, its place among the conjuncts of that, and
    /// in a group of these.
    path: (usize, usize, Option<usize>),
    /// Its text, of the first group.
    pub text: String,
}

impl Conjunct {
    /// Whether this is the same conjunct of a list of another length.
    pub(super) fn is_same_place(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

/// Every conjunct of this statement's WHERE.
///
/// # Panics
///
/// When the text can't be read.
#[must_use]
pub fn conjuncts(sql: &str) -> Vec<Conjunct> {
    deep(|| all_conjuncts(sql))
}

fn all_conjuncts(sql: &str) -> Vec<Conjunct> {
    let mut statement = parsed(sql);
    let mut all = Vec::new();
    for (branch, place) in selections(&mut statement).into_iter().enumerate() {
        let Some(selection) = place.take() else {
            continue;
        };
        for (at, conjunct) in split(selection, &BinaryOperator::And)
            .into_iter()
            .enumerate()
        {
            all.push(Conjunct {
                path: (branch, at, None),
                text: plain(&conjunct),
            });
            let members = match groups(conjunct.clone()) {
                Some(mut groups) => split(groups.swap_remove(0), &BinaryOperator::And),
                None => within_subquery(conjunct),
            };
            all.extend(members.iter().enumerate().map(|(within, member)| Conjunct {
                path: (branch, at, Some(within)),
                text: plain(member),
            }));
        }
    }
    all
}

/// The statement without this conjunct, and which of its `?` are left; the
/// same statement, written anew, when nothing is dropped.
///
/// # Panics
///
/// When the text can't be read, or has no such conjunct.
#[must_use]
pub fn without(sql: &str, dropped: Option<&Conjunct>) -> (String, Vec<usize>) {
    deep(|| written_without(sql, dropped))
}

fn written_without(sql: &str, dropped: Option<&Conjunct>) -> (String, Vec<usize>) {
    let mut statement = parsed(sql);
    if let Some(dropped) = dropped {
        let (branch, at, within) = dropped.path;
        let place = selections(&mut statement).swap_remove(branch);
        let whole = place.take().expect("a WHERE");
        let mut all = split(whole, &BinaryOperator::And);
        match within {
            None => drop(all.remove(at)),
            Some(within) => {
                all[at] = match groups(all[at].clone()) {
                    Some(groups) => without_member(groups, within),
                    None => without_within_subquery(all[at].clone(), within),
                };
            }
        }
        *place = joined(all, &BinaryOperator::And);
    }
    unnumbered(&statement.to_string())
}

fn without_member(groups: Vec<Expr>, within: usize) -> Expr {
    let groups = groups.into_iter().map(|group| {
        let mut members = split(group, &BinaryOperator::And);
        members.remove(within);
        nested(joined(members, &BinaryOperator::And).expect("further members"))
    });
    nested(joined(groups.collect(), &BinaryOperator::Or).expect("a group"))
}

/// The conjuncts of `EXISTS (SELECT … WHERE …)`.
fn within_subquery(expr: Expr) -> Vec<Expr> {
    let Expr::Exists { subquery, .. } = expr else {
        return Vec::new();
    };
    match *subquery.body {
        SetExpr::Select(select) => select
            .selection
            .map_or_else(Vec::new, |whole| split(whole, &BinaryOperator::And)),
        _ => Vec::new(),
    }
}

fn without_within_subquery(mut expr: Expr, within: usize) -> Expr {
    let mut members = within_subquery(expr.clone());
    members.remove(within);
    if let Expr::Exists { subquery, .. } = &mut expr
        && let SetExpr::Select(select) = subquery.body.as_mut()
    {
        select.selection = joined(members, &BinaryOperator::And);
    }
    expr
}

/// Runs where a tree of 500 ORs, each within the one before, can be walked.
fn deep<T: Send>(walk: impl FnOnce() -> T + Send) -> T {
    const STACK_BYTES: usize = 64 << 20;
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK_BYTES);
        let walked = thread.spawn_scoped(scope, walk).unwrap().join();
        walked.unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// The words for a shared lock that all servers know, which the parser does not,
/// and those of today.
const SHARED: &str = " LOCK IN SHARE MODE";
const SHARED_TODAY: &str = " FOR SHARE";

/// Reads a statement, with its `?` numbered.
fn parsed(sql: &str) -> Statement {
    let mut numbered = String::with_capacity(sql.len() * 2);
    for (at, part) in sql.split('?').enumerate() {
        if at > 0 {
            numbered.push_str(&format!("?{}", at - 1));
        }
        numbered.push_str(part);
    }
    let numbered = numbered.replace(SHARED, SHARED_TODAY);
    let dialect: &dyn Dialect = if sql.contains('`') {
        &MySqlDialect {}
    } else {
        &SQLiteDialect {}
    };
    let read = Parser::parse_sql(dialect, &numbered);
    let mut statements = read.unwrap_or_else(|error| panic!("{error}: {sql}"));
    assert_eq!(statements.len(), 1, "{sql}");
    statements.remove(0)
}

/// Takes the numbers of the `?` away again, and answers them.
fn unnumbered(sql: &str) -> (String, Vec<usize>) {
    let sql = sql.replace(SHARED_TODAY, SHARED);
    let mut parts = sql.split('?');
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut left = Vec::new();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        left.push(part[..digits].parse().unwrap());
        text.push('?');
        text.push_str(&part[digits..]);
    }
    (text, left)
}

/// Where a statement has its WHERE, one for each SELECT of a union; the rows of
/// an INSERT are chosen by none.
fn selections(statement: &mut Statement) -> Vec<&mut Option<Expr>> {
    let query = match statement {
        Statement::Update(update) => return vec![&mut update.selection],
        Statement::Delete(delete) => return vec![&mut delete.selection],
        Statement::Insert(insert) => insert.source.as_mut().expect("rows to insert"),
        Statement::Query(query) => query,
        other => panic!("no statement of a catalogue: {other}"),
    };
    selections_of(&mut query.body)
}

fn selections_of(body: &mut SetExpr) -> Vec<&mut Option<Expr>> {
    match body {
        SetExpr::Select(select) => vec![&mut select.selection],
        SetExpr::Query(query) => selections_of(&mut query.body),
        SetExpr::SetOperation { left, right, .. } => {
            let mut all = selections_of(left);
            all.extend(selections_of(right));
            all
        }
        _ => Vec::new(),
    }
}

/// The operands of a chain of one operator.
fn split(expr: Expr, operator: &BinaryOperator) -> Vec<Expr> {
    match expr {
        Expr::BinaryOp { left, op, right } if op == *operator => {
            let mut all = split(*left, operator);
            all.extend(split(*right, operator));
            all
        }
        other => vec![other],
    }
}

/// The members of `(a AND b)` and of `((a AND b) OR (c AND d))`: alternatives
/// that say the same of different rows.
fn groups(expr: Expr) -> Option<Vec<Expr>> {
    let Expr::Nested(inner) = expr else {
        return None;
    };
    let alternatives = split(*inner, &BinaryOperator::Or);
    let bare = alternatives.into_iter().map(|group| match group {
        Expr::Nested(group) => *group,
        bare => bare,
    });
    let all: Vec<_> = bare.collect();
    let sizes: BTreeSet<_> = all
        .iter()
        .map(|group| split(group.clone(), &BinaryOperator::And).len())
        .collect();
    (sizes.len() == 1 && !sizes.contains(&1)).then_some(all)
}

fn joined(all: Vec<Expr>, operator: &BinaryOperator) -> Option<Expr> {
    all.into_iter().reduce(|left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: operator.clone(),
        right: Box::new(right),
    })
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

/// The text without numbers and quotes.
fn plain(expr: &Expr) -> String {
    unnumbered(&expr.to_string()).0.replace(['"', '`'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: &str = "UPDATE `t` SET `a` = ? WHERE `s` + 0 = 1 AND \
        ((`id` = ? AND `seq` = ?) OR (`id` = ? AND `seq` = ?)) AND `until` >= UTC_TIMESTAMP(6)";

    fn texts(sql: &str) -> Vec<String> {
        conjuncts(sql)
            .into_iter()
            .map(|conjunct| conjunct.text)
            .collect()
    }

    #[test]
    fn conjuncts_of_each_part_of_a_union_are_found_and_dropped() {
        let sql = "SELECT `a` FROM `t` WHERE `s` = 0 UNION ALL (SELECT `a` FROM `t` WHERE `s` = 4)";
        let found = conjuncts(sql);
        assert_eq!(texts(sql), ["s = 0", "s = 4"]);
        let (without, _) = without(sql, Some(&found[1]));
        let expected = "SELECT `a` FROM `t` WHERE `s` = 0 UNION ALL (SELECT `a` FROM `t`)";
        assert_eq!(without, expected);
    }

    #[test]
    fn conjuncts_of_groups_are_found_once() {
        let groups = "((id = ? AND seq = ?) OR (id = ? AND seq = ?))";
        let until = "until >= UTC_TIMESTAMP(6)";
        assert_eq!(
            texts(GROUPS),
            ["s + 0 = 1", groups, "id = ?", "seq = ?", until]
        );
        assert_eq!(texts("SELECT \"a\" FROM \"t\""), Vec::<String>::new());
        assert_eq!(
            texts("INSERT INTO \"u\" (\"a\") SELECT \"a\" FROM \"t\" WHERE \"id\" IN (?, ?)"),
            ["id IN (?, ?)"]
        );
        assert_eq!(
            texts("INSERT INTO \"u\" (\"a\") VALUES (?)"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn conjuncts_within_a_subquery_are_found_and_dropped() {
        let sql = "SELECT `a` FROM `t` WHERE `s` = ? AND EXISTS(SELECT `f` FROM `u` WHERE `x` = ? AND `y` = ?)";
        let all = conjuncts(sql);
        let said: Vec<_> = all.iter().map(|conjunct| conjunct.text.as_str()).collect();
        assert_eq!(said.len(), 4);
        assert_eq!(said[2..], ["x = ?", "y = ?"]);
        let (text, left) = without(sql, Some(&all[2]));
        assert!(
            text.ends_with("EXISTS (SELECT `f` FROM `u` WHERE `y` = ?)"),
            "{text}"
        );
        assert_eq!(left, [0, 2]);
    }

    #[test]
    fn alternatives_that_say_different_things_are_dropped_together() {
        let sql = "SELECT `a` FROM `t` WHERE `s` = ? AND (`x` > ? OR (`x` = ? AND `y` > ?))";
        assert_eq!(texts(sql).len(), 2);
    }

    #[test]
    fn what_is_dropped_takes_its_binds_along() {
        let all = conjuncts(GROUPS);
        let (text, left) = without(GROUPS, Some(&all[2]));
        assert_eq!(
            text,
            "UPDATE `t` SET `a` = ? WHERE `s` + 0 = 1 AND \
             ((`seq` = ?) OR (`seq` = ?)) AND `until` >= UTC_TIMESTAMP(6)"
        );
        assert_eq!(left, [0, 2, 4]);
        let (text, left) = without(GROUPS, Some(&all[1]));
        assert_eq!(
            text,
            "UPDATE `t` SET `a` = ? WHERE `s` + 0 = 1 AND `until` >= UTC_TIMESTAMP(6)"
        );
        assert_eq!(left, [0]);
        assert_eq!(
            without(GROUPS, None),
            (GROUPS.to_owned(), vec![0, 1, 2, 3, 4])
        );
        let only = "DELETE FROM \"t\" WHERE \"id\" IN (?)";
        let (text, left) = without(only, Some(&conjuncts(only)[0]));
        assert_eq!((text.as_str(), left.len()), ("DELETE FROM \"t\"", 0));
    }
}
