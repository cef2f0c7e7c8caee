//! The table, as Markdown for people and as JSON for programs.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::{Value, json};

use crate::{
    entry::{Entry, Place, Who},
    machine::Machine,
    measure::Unit,
    results::{Line, Results, Series},
    targets::{Target, Verdict, round},
};

pub fn markdown(machine: &Machine, results: &Results, targets: &[Target]) -> String {
    let mut text = format!("# Measured\n\n{machine}\n");
    text.push_str(
        "Medians over the rounds; in parentheses the ratio to the row floor on the same database.\n\
         `void` marks a contestant that did not run each job exactly once, or failed; the reasons are below.\n",
    );
    for place in Place::ALL {
        place_table(&mut text, place, results);
    }
    target_table(&mut text, targets);
    let errors = results.errors();
    if !errors.is_empty() {
        text.push_str("\n## Void\n\n");
        for error in errors {
            let _ = writeln!(text, "- {}", error.replace('\n', " "));
        }
    }
    text
}

fn place_table(text: &mut String, place: Place, results: &Results) {
    let lines: Vec<_> = results
        .lines
        .iter()
        .filter(|line| of_place(line, place).next().is_some())
        .collect();
    let whos: Vec<_> = Who::ALL
        .into_iter()
        .filter(|who| {
            lines
                .iter()
                .any(|line| line.series.contains_key(&Entry { place, who: *who }))
        })
        .collect();
    if whos.is_empty() {
        return;
    }
    let names: Vec<_> = whos.iter().map(|who| who.name()).collect();
    let _ = writeln!(text, "\n## {}\n", place.name());
    let _ = writeln!(text, "| | {} |", names.join(" | "));
    let _ = writeln!(text, "| --- |{}", " ---: |".repeat(whos.len()));
    for line in lines {
        let floor = line
            .series
            .get(&Entry {
                place,
                who: Who::RowFloor,
            })
            .and_then(Series::median);
        let cell = |who: &Who| {
            let series = line.series.get(&Entry { place, who: *who });
            series.map_or_else(String::new, |series| cell(line.unit, series, floor))
        };
        let cells: Vec<_> = whos.iter().map(cell).collect();
        let _ = writeln!(
            text,
            "| {}{} | {} |",
            line.name,
            unit(line.unit),
            cells.join(" | ")
        );
    }
}

fn of_place(line: &Line, place: Place) -> impl Iterator<Item = &Entry> {
    line.series.keys().filter(move |entry| entry.place == place)
}

fn unit(unit: Option<Unit>) -> &'static str {
    match unit {
        Some(Unit::JobsPerSecond) => ", jobs/s",
        Some(Unit::MicrosecondsPerJob) => ", µs",
        Some(Unit::Milliseconds) => ", ms",
        Some(Unit::CountPerJob | Unit::Count) | None => "",
    }
}

fn cell(unit: Option<Unit>, series: &Series, floor: Option<f64>) -> String {
    let Some(median) = series.median() else {
        return "void".to_owned();
    };
    let is_compared = !matches!(unit, Some(Unit::Count));
    let ratio = floor
        .filter(|floor| is_compared && *floor > 0.0)
        .map(|floor| median / floor);
    let ratio = ratio
        .map(|ratio| format!(" ({ratio:.2})"))
        .unwrap_or_default();
    format!("{}{ratio}", round(median))
}

fn target_table(text: &mut String, targets: &[Target]) {
    if targets.is_empty() {
        return;
    }
    text.push_str("\n## Must reach\n\n| | contestant | target | reached | |\n| --- | --- | --- | ---: | --- |\n");
    for target in targets {
        let reached = target
            .reached
            .map_or_else(|| "-".to_owned(), |value| value.to_string());
        let verdict = match target.verdict {
            Verdict::Ok => "OK",
            Verdict::Missed => "**MISSED**",
            Verdict::NotMeasured => "not measured",
        };
        let Target {
            what,
            contestant,
            target,
            ..
        } = target;
        let _ = writeln!(
            text,
            "| {what} | {contestant} | {target} | {reached} | {verdict} |"
        );
    }
}

pub fn json(machine: &Machine, results: &Results, targets: &[Target]) -> Value {
    let figures: Vec<_> = results.lines.iter().flat_map(line_json).collect();
    json!({ "machine": machine, "figures": figures, "targets": targets })
}

fn line_json(line: &Line) -> Vec<Value> {
    let floors: BTreeMap<_, _> = line
        .series
        .iter()
        .filter(|(entry, _)| entry.who == Who::RowFloor)
        .filter_map(|(entry, series)| Some((entry.place, series.median()?)))
        .collect();
    let figure = |(entry, series): (&Entry, &Series)| {
        let median = series.median();
        let floor = floors.get(&entry.place).filter(|floor| **floor > 0.0);
        json!({
            "name": line.name,
            "unit": line.unit,
            "database": entry.place,
            "contestant": entry.who,
            "median": median,
            "over_row_floor": median.zip(floor).map(|(median, floor)| median / floor),
            "values": series.values,
            "errors": series.errors,
        })
    };
    line.series.iter().map(figure).collect()
}
