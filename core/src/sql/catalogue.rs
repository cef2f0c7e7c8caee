//! Every statement of one job type on one database.

use std::fmt::Write as _;

use super::{
    claim,
    dialect::Dialect,
    enqueue, finish, nodes, operate,
    parts::Maker,
    reap, shards,
    statement::{Statement, Stepped},
    table::{self, TableSpec},
};
use crate::{
    op::{due::Lane, operate::Action},
    schema::{Finished, JobSchema, LeaseBy},
};

/// Lengths that lists are padded to.
const LIST_LENGTHS: [usize; 5] = [1, 8, 32, 128, 500];
/// Lengths of lists whose every entry costs several binds and comparisons.
const SETTLE_LENGTHS: [usize; 3] = [1, 8, 64];
/// Lengths of operators' lists. A longer one is a fourth of a small table, which
/// the server then reads whole, waiting for rows that are not in the list.
const OPERATE_LENGTHS: [usize; 4] = [1, 8, 32, 128];
/// Rows of one INSERT.
const INSERT_ROWS: [usize; 4] = [1, 10, 100, 1000];

/// The closed set of statements that a job type ever sends to a database.
#[derive(Debug)]
#[expect(missing_docs, reason = "each is named after the operation it serves")]
pub struct Catalogue {
    pub tables: Vec<TableSpec>,
    pub create: Vec<String>,
    pub insert: Stepped,
    pub find_keys: Stepped,
    pub heads: Statement,
    pub clock: Statement,
    pub pick: ByLane<Statement>,
    pub pick_alone: Statement,
    pub take: ByLane<Stepped>,
    pub won: Stepped,
    pub renew: Stepped,
    pub live: Stepped,
    pub succeed: Stepped,
    pub archive: Option<Archive>,
    pub settle: Stepped,
    pub outcome: Stepped,
    pub lapsed: Statement,
    pub settle_lapsed: Stepped,
    pub look: Stepped,
    pub operate: Vec<(Action, Stepped)>,
    pub any_open: Statement,
    pub counts: Statement,
    pub join: Statement,
    pub stay: Statement,
    pub nodes: Statement,
    pub forget: Statement,
    pub leave: Statement,
    /// Those of leases of shards, for job types that have them.
    pub held: Option<Held>,
}

/// A statement per lane.
#[derive(Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ByLane<T> {
    pub fresh: T,
    pub retry: T,
}

/// How finished rows move to the history table.
#[derive(Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Archive {
    pub copy: Stepped,
    pub remove: Stepped,
}

/// What leases of shards need.
#[derive(Debug)]
#[expect(missing_docs, reason = "each is named after the operation it serves")]
pub struct Held {
    pub shards: Statement,
    pub add: Statement,
    pub keep: Statement,
    pub take: Stepped,
    pub release: Stepped,
    pub live: Stepped,
    pub pick: Statement,
    pub next_due: Statement,
    pub pick_doubt: Statement,
    pub succeed: Stepped,
    pub settle: Stepped,
}

impl<T> ByLane<T> {
    fn new(make: impl Fn(Lane) -> T) -> Self {
        Self {
            fresh: make(Lane::Fresh),
            retry: make(Lane::Retry),
        }
    }

    /// The one for this lane.
    #[must_use]
    pub fn of(&self, lane: Lane) -> &T {
        match lane {
            Lane::Fresh | Lane::Doubt => &self.fresh,
            Lane::Retry | Lane::Alone => &self.retry,
        }
    }
}

impl Catalogue {
    /// All statements of this job type in this dialect.
    #[must_use]
    pub fn new(schema: &JobSchema, dialect: &dyn Dialect) -> Self {
        let maker = Maker { schema, dialect };
        let list = |build: &dyn Fn(usize) -> Statement| Stepped::new(&LIST_LENGTHS, build);
        let settle = |build: &dyn Fn(usize) -> Statement| Stepped::new(&SETTLE_LENGTHS, build);
        let operated = |build: &dyn Fn(usize) -> Statement| Stepped::new(&OPERATE_LENGTHS, build);
        let rows_max = dialect.binds_max() / enqueue::binds_per_row(maker).max(1);
        let rows: Vec<_> = INSERT_ROWS
            .into_iter()
            .filter(|rows| *rows == 1 || *rows <= rows_max)
            .collect();
        Self {
            tables: table::specs(maker),
            create: table::create(maker),
            insert: Stepped::new(&rows, |rows| enqueue::insert(maker, rows)),
            find_keys: list(&|len| enqueue::find_keys(maker, len)),
            clock: claim::clock(maker),
            heads: claim::heads(maker),
            pick: ByLane::new(|lane| claim::pick(maker, lane)),
            pick_alone: claim::pick(maker, Lane::Alone),
            take: ByLane::new(|lane| list(&|len| claim::take(maker, lane, len))),
            won: list(&|len| claim::won(maker, len)),
            renew: list(&|len| claim::renew(maker, len)),
            live: list(&|len| claim::live(maker, len)),
            succeed: list(&|len| match schema.finished {
                Finished::Keep | Finished::History => finish::succeed(maker, len),
                Finished::Delete => finish::delete(maker, len),
            }),
            archive: (schema.finished == Finished::History).then(|| Archive {
                copy: list(&|len| finish::archive(maker, len)),
                remove: list(&|len| finish::remove(maker, len)),
            }),
            settle: settle(&|len| finish::settle(maker, len)),
            outcome: list(&|len| finish::outcome(maker, len)),
            lapsed: reap::lapsed(maker),
            settle_lapsed: settle(&|len| finish::settle_lapsed(maker, len)),
            look: operated(&|len| operate::look(maker, len)),
            operate: Action::ALL
                .into_iter()
                .map(|action| {
                    let make = |len| operate::operate(maker, action, len);
                    (action, operated(&make))
                })
                .collect(),
            any_open: claim::any_open(maker),
            counts: claim::counts(maker),
            join: nodes::join(maker),
            stay: nodes::stay(maker),
            nodes: nodes::nodes(maker),
            forget: nodes::forget(maker),
            leave: nodes::leave(maker),
            held: (schema.lease_by == LeaseBy::Shard).then(|| Held {
                shards: shards::read(maker),
                add: shards::add(maker),
                keep: shards::keep(maker),
                take: list(&|len| shards::take(maker, len)),
                release: list(&|len| shards::release(maker, len)),
                live: list(&|len| shards::live(maker, len)),
                pick: claim::pick_held(maker),
                next_due: claim::next_due(maker),
                pick_doubt: claim::pick(maker, Lane::Doubt),
                succeed: list(&|len| match schema.finished {
                    Finished::Keep | Finished::History => finish::succeed_held(maker, len),
                    Finished::Delete => finish::delete_held(maker, len),
                }),
                settle: settle(&|len| finish::settle_held(maker, len)),
            }),
        }
    }

    /// The statement that picks due jobs of a lane.
    #[must_use]
    pub fn pick(&self, lane: Lane) -> &Statement {
        match lane {
            Lane::Fresh | Lane::Retry => self.pick.of(lane),
            Lane::Alone => &self.pick_alone,
            Lane::Doubt => &self.held().pick_doubt,
        }
    }

    /// The statements of shards' leases.
    ///
    /// # Panics
    ///
    /// When the job type has none.
    #[must_use]
    pub fn held(&self) -> &Held {
        let held = self.held.as_ref();
        held.unwrap_or_else(|| unreachable!("only job types with leases of shards ask for them"))
    }

    /// The statements of an operator's action.
    ///
    /// # Panics
    ///
    /// Never: every action has statements.
    #[must_use]
    pub fn operate(&self, action: Action) -> &Stepped {
        let found = self.operate.iter().find(|(known, _)| *known == action);
        found.map_or_else(|| unreachable!("every action has statements"), |(_, s)| s)
    }

    /// Every statement besides those of `install`, with its name, in the order
    /// of a job's life. Lists of several lengths appear once per length, as
    /// `name[length]`.
    #[must_use]
    pub fn statements(&self) -> Vec<(String, &Statement)> {
        let mut all = Vec::new();
        let one = |name: &str, statement| (name.to_owned(), statement);
        all.extend(stepped("insert", &self.insert));
        all.extend(stepped("find_keys", &self.find_keys));
        all.push(one("heads", &self.heads));
        all.push(one("clock", &self.clock));
        all.push(one("pick_fresh", &self.pick.fresh));
        all.push(one("pick_retry", &self.pick.retry));
        all.push(one("pick_alone", &self.pick_alone));
        all.extend(stepped("take_fresh", &self.take.fresh));
        all.extend(stepped("take_retry", &self.take.retry));
        all.extend(stepped("won", &self.won));
        all.extend(stepped("renew", &self.renew));
        all.extend(stepped("live", &self.live));
        all.extend(stepped("succeed", &self.succeed));
        if let Some(archive) = &self.archive {
            all.extend(stepped("archive_copy", &archive.copy));
            all.extend(stepped("archive_remove", &archive.remove));
        }
        all.extend(stepped("settle", &self.settle));
        all.extend(stepped("outcome", &self.outcome));
        all.push(one("lapsed", &self.lapsed));
        all.extend(stepped("settle_lapsed", &self.settle_lapsed));
        all.extend(stepped("look", &self.look));
        for (action, statements) in &self.operate {
            let name = format!("{action:?}").to_lowercase();
            all.extend(stepped(&name, statements));
        }
        all.push(one("any_open", &self.any_open));
        all.push(one("counts", &self.counts));
        all.push(one("node_join", &self.join));
        all.push(one("node_stay", &self.stay));
        all.push(one("nodes", &self.nodes));
        all.push(one("node_forget", &self.forget));
        all.push(one("node_leave", &self.leave));
        if let Some(held) = &self.held {
            all.push(one("shards", &held.shards));
            all.push(one("shard_add", &held.add));
            all.push(one("shard_keep", &held.keep));
            all.extend(stepped("shard_take", &held.take));
            all.extend(stepped("shard_release", &held.release));
            all.extend(stepped("shard_live", &held.live));
            all.push(one("pick_held", &held.pick));
            all.push(one("next_due", &held.next_due));
            all.push(one("pick_doubt", &held.pick_doubt));
            all.extend(stepped("succeed_held", &held.succeed));
            all.extend(stepped("settle_held", &held.settle));
        }
        all
    }

    /// The catalogue as one file for a database administrator to read. Of
    /// lists of several lengths only the shortest is shown.
    #[must_use]
    pub fn to_sql(&self) -> String {
        let mut text = String::new();
        for create in &self.create {
            let _ = writeln!(text, "{create};\n");
        }
        for (name, statement) in self.statements() {
            let shown = match name.split_once('[') {
                None => Some(name.as_str()),
                Some((stem, "1]")) => Some(stem),
                Some(_) => None,
            };
            if let Some(name) = shown {
                let _ = writeln!(text, "-- {name}\n{};\n", statement.sql());
            }
        }
        text
    }
}

fn stepped<'a>(
    name: &str,
    statements: &'a Stepped,
) -> impl Iterator<Item = (String, &'a Statement)> {
    statements
        .iter()
        .map(move |(len, statement)| (format!("{name}[{len}]"), statement))
}
