//! What places a job on a shard: fields, a template, or its key.

use crate::{
    diagnostics::{self, Errors},
    names::{FieldOption, JobOption, Name as _},
    parse::Parsed,
    template::Piece,
};

const ONE_SHARD: &str = "with `shards = 1`";

pub(super) fn check(parsed: &Parsed, errors: &Errors) {
    template_fields(parsed, errors);
    conflicts(parsed, errors);
    one_shard(parsed, errors);
}

fn template_fields(parsed: &Parsed, errors: &Errors) {
    let Some(given) = parsed.options.shard_key.given() else {
        return;
    };
    for piece in &given.value {
        let Piece::Field { name, .. } = piece else {
            continue;
        };
        let fields = || parsed.fields.iter();
        match fields().find(|field| field.name == *name) {
            None => errors.push(diagnostics::unknown_field(
                &given.tokens,
                name,
                fields().map(|field| field.name.as_str()),
            )),
            Some(field) if field.skip.name().is_some() => {
                errors.push(diagnostics::skipped_in_template(&given.tokens, name));
            }
            Some(_) => {}
        }
    }
}

fn conflicts(parsed: &Parsed, errors: &Errors) {
    let options = &parsed.options;
    if options.shard_key.name().is_some() {
        for field in &parsed.fields {
            if let Some(shard_by) = field.shard_by.name() {
                let (own, other) = (FieldOption::ShardBy, JobOption::ShardKey);
                errors.push(diagnostics::conflict(
                    shard_by,
                    own.as_str(),
                    other.as_str(),
                ));
            }
        }
    } else if let Some(column) = options.shard_key_column.name() {
        let (own, other) = (JobOption::ShardKeyColumn, JobOption::ShardKey);
        errors.push(diagnostics::needs(column, own.as_str(), other.as_str()));
    }
}

fn one_shard(parsed: &Parsed, errors: &Errors) {
    let options = &parsed.options;
    if options.shards.given().is_none_or(|given| given.value != 1) {
        return;
    }
    let push = |at, name| {
        let fix = "remove it, or raise `shards`";
        errors.push(diagnostics::no_effect(at, name, ONE_SHARD, fix));
    };
    for shard_by in parsed.fields.iter().filter_map(|f| f.shard_by.name()) {
        push(shard_by, FieldOption::ShardBy.as_str());
    }
    // With a column of its own the shard key is there to be read.
    if let (Some(shard_key), None) = (options.shard_key.name(), options.shard_key_column.name()) {
        push(shard_key, JobOption::ShardKey.as_str());
    }
}
