//! What the library must reach, judged by the figures of one run.

use serde::Serialize;

use crate::{
    entry::{Entry, Place, Who},
    measure::{backlog, drain, snapshot, two},
    options::Sizes,
    results::Results,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Ok,
    Missed,
    /// A figure that it needs was void or not asked for.
    NotMeasured,
}

#[derive(Clone, Copy, Debug)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// A row of the table of targets.
#[derive(Clone, Debug, Serialize)]
pub struct Target {
    pub what: String,
    pub contestant: String,
    pub target: String,
    pub reached: Option<f64>,
    pub verdict: Verdict,
}

/// Every target for every contestant of ours that took part.
pub fn judge(results: &Results, entries: &[Entry], sizes: &Sizes) -> Vec<Target> {
    let ours = entries.iter().filter(|entry| entry.who.is_ours());
    ours.flat_map(|ours| judge_one(results, *ours, sizes))
        .collect()
}

fn judge_one(results: &Results, ours: Entry, sizes: &Sizes) -> Vec<Target> {
    let Some(floor) = ours.who.floor() else {
        return Vec::new();
    };
    let floor = Entry { who: floor, ..ours };
    let row_floor = Entry {
        who: Who::RowFloor,
        ..ours
    };
    let (over_apalis, examined_max) = match ours.who {
        Who::OursShard => (20.0, 3.0),
        Who::OursShardDelete => (25.0, 3.0),
        _ => (12.0, 4.0),
    };
    let tuned = Entry {
        who: Who::ApalisTuned,
        ..ours
    };
    let of = |entry, name: &str| results.median(entry, name);
    let over = |entry, name: &str| ratio(of(ours, name), of(entry, name));
    let drained = drain::name(16);
    let judged = |what: &str, bound, reached| target(what, ours, bound, reached);
    let is_server = ours.place != Place::Sqlite;

    let mut targets = vec![
        judged(
            "drain over the floor",
            Bound::AtLeast(0.85),
            over(floor, &drained),
        ),
        judged(
            "bulk enqueue over the floor",
            Bound::AtLeast(0.9),
            over(row_floor, "enqueue in bulk"),
        ),
        judged(
            "client CPU per job over the floor's",
            Bound::AtMost(3.0),
            over(floor, "client CPU per job, 16 at a time"),
        ),
    ];
    if ours.place == Place::Mysql9 {
        let what = "drain over apalis-mysql tuned";
        targets.push(judged(
            what,
            Bound::AtLeast(over_apalis),
            over(tuned, &drained),
        ));
    }
    if is_server {
        targets.push(judged(
            "rows examined per job",
            Bound::AtMost(examined_max),
            of(ours, "rows examined per job, 16 at a time"),
        ));
        targets.push(judged(
            "statements per job at 64 in flight",
            Bound::AtMost(0.05),
            of(ours, "statements per job, 64 at a time"),
        ));
    }
    if let Some(most) = sizes.future_rows.last() {
        let beside = ratio(of(ours, &backlog::name(*most)), of(ours, &backlog::name(0)));
        let what = format!("drain beside {most} future rows over beside none");
        targets.push(judged(&what, Bound::AtLeast(0.9), beside));
    }
    targets.push(judged(
        "claim with a long snapshot open over without",
        Bound::AtMost(2.0),
        ratio(of(ours, snapshot::WITH), of(ours, snapshot::WITHOUT)),
    ));
    let p99 = "from due to start at 200 jobs/s, p99";
    let late_max = of(floor, p99).map_or(20.0, |floor| (1.2 * floor).max(20.0));
    targets.push(judged(
        "p99 from due to start, ms",
        Bound::AtMost(late_max),
        of(ours, p99),
    ));
    if is_server {
        for (what, name) in [
            ("row lock waits, two processes", two::LOCK_WAITS),
            ("deadlocks, two processes", two::DEADLOCKS),
        ] {
            targets.push(judged(what, Bound::AtMost(0.0), of(ours, name)));
        }
    }
    targets
}

fn ratio(value: Option<f64>, of: Option<f64>) -> Option<f64> {
    Some(value? / of?)
}

fn target(what: &str, ours: Entry, bound: Bound, reached: Option<f64>) -> Target {
    let (target, is_reached) = match bound {
        Bound::AtLeast(least) => (
            format!("at least {least}"),
            reached.map(|value| value >= least),
        ),
        Bound::AtMost(most) => (
            format!("at most {}", round(most)),
            reached.map(|value| value <= most),
        ),
    };
    Target {
        what: what.to_owned(),
        contestant: ours.to_string(),
        target,
        reached: reached.map(round),
        verdict: match is_reached {
            Some(true) => Verdict::Ok,
            Some(false) => Verdict::Missed,
            None => Verdict::NotMeasured,
        },
    }
}

/// Three digits that count.
pub fn round(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = (2.0 - value.abs().log10().floor()).max(0.0);
    let scale = 10_f64.powf(digits);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        measure::{Figure, Unit},
        options::Size,
    };

    const OURS: Entry = Entry {
        place: Place::Mysql9,
        who: Who::Ours,
    };
    const FLOOR: Entry = Entry {
        place: Place::Mysql9,
        who: Who::RowFloor,
    };

    /// The verdict on the drain when the library and the floor did so many a second.
    fn drained(ours: f64, floor: anyhow::Result<f64>) -> Verdict {
        let figures = |value| vec![Figure::new(drain::name(16), Unit::JobsPerSecond, value)];
        let mut results = Results::default();
        results.note(&drain::name(16), OURS, Ok(figures(ours)));
        results.note(&drain::name(16), FLOOR, floor.map(figures));
        judge(&results, &[OURS, FLOOR], &Size::Quick.sizes())[0].verdict
    }

    #[test]
    fn a_target_is_reached_missed_or_not_measured() {
        assert_eq!(drained(850.0, Ok(1000.0)), Verdict::Ok);
        assert_eq!(drained(849.0, Ok(1000.0)), Verdict::Missed);
        let void = Err(anyhow::anyhow!("ran twice"));
        assert_eq!(drained(850.0, void), Verdict::NotMeasured);
    }

    #[test]
    fn one_void_round_voids_the_figure() {
        let mut results = Results::default();
        let figure = Figure::new("drain", Unit::JobsPerSecond, 1.0);
        results.note("drain", OURS, Ok(vec![figure]));
        assert_eq!(results.median(OURS, "drain"), Some(1.0));
        results.note("drain", OURS, Err(anyhow::anyhow!("ran twice")));
        assert_eq!(results.median(OURS, "drain"), None);
    }

    #[test]
    fn three_digits_count() {
        assert_eq!(
            [round(12345.6), round(1.2345), round(0.012345), round(0.0)],
            [12346.0, 1.23, 0.0123, 0.0]
        );
    }
}
