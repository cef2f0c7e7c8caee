//! Everything that was measured, in the order of the table.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    entry::Entry,
    measure::{Figure, Unit, median},
};

/// One figure of one contestant, over the rounds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Series {
    pub values: Vec<f64>,
    /// Why it is void. One round that failed voids them all.
    pub errors: Vec<String>,
}

impl Series {
    pub fn median(&self) -> Option<f64> {
        self.errors
            .is_empty()
            .then(|| median(&mut self.values.clone()))?
    }
}

/// A row of the table.
#[derive(Clone, Debug)]
pub struct Line {
    pub name: String,
    pub unit: Option<Unit>,
    pub series: BTreeMap<Entry, Series>,
}

#[derive(Clone, Debug, Default)]
pub struct Results {
    pub lines: Vec<Line>,
}

impl Results {
    /// Notes what a measurement answered. An error goes under the measurement's
    /// own name, whose figure it then stands in for.
    pub fn note(&mut self, measurement: &str, entry: Entry, answer: anyhow::Result<Vec<Figure>>) {
        match answer {
            Ok(figures) => {
                for figure in figures {
                    let line = self.line(&figure.name);
                    line.unit = Some(figure.unit);
                    line.series
                        .entry(entry)
                        .or_default()
                        .values
                        .push(figure.value);
                }
            }
            Err(error) => {
                let line = self.line(measurement);
                line.series
                    .entry(entry)
                    .or_default()
                    .errors
                    .push(format!("{error:#}"));
            }
        }
    }

    fn line(&mut self, name: &str) -> &mut Line {
        let index = self.lines.iter().position(|line| line.name == name);
        let index = index.unwrap_or_else(|| {
            let (name, series) = (name.to_owned(), BTreeMap::new());
            self.lines.push(Line {
                name,
                unit: None,
                series,
            });
            self.lines.len() - 1
        });
        &mut self.lines[index]
    }

    pub fn median(&self, entry: Entry, name: &str) -> Option<f64> {
        let line = self.lines.iter().find(|line| line.name == name)?;
        line.series.get(&entry)?.median()
    }

    /// Whether anything besides the peers has a void figure.
    pub fn is_own_void(&self) -> bool {
        let series = self.lines.iter().flat_map(|line| &line.series);
        let mut own = series.filter(|(entry, _)| !entry.who.is_peer());
        own.any(|(_, series)| !series.errors.is_empty())
    }

    /// Every failure, once.
    pub fn errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        for line in &self.lines {
            for (entry, series) in &line.series {
                errors.extend(
                    series
                        .errors
                        .iter()
                        .map(|error| format!("{}, {entry}: {error}", line.name)),
                );
            }
        }
        errors.dedup();
        errors
    }
}
