use std::{collections::BTreeSet, time::Duration};

use proptest::prelude::*;

use crate::{
    key::KeyEncoder,
    op::nodes::NodeName,
    shard::{SHARDS_MAX, owner_of, shard_key_hash, shard_of, shards_of, spread_offset},
};

const FLIGHTS: &str = include_str!("../../../examples/data/flights-2013-02-04-week.csv");

// Computed by another program from the documented encoding. They never
// change: a job whose shard changed would be looked for where it is not.
#[test]
fn hashes_of_shard_keys_never_change() {
    for (shard_key, hash) in [
        ("UA_20130204", 0x1ebe_118e_5a0e_fdb7),
        ("B6_20130206", 0x5dc9_d27a_3bfa_98d4),
        ("é", 0x0f90_5d60_834d_fc7f),
        ("", 0x1a2d_8f0a_88c0_acdf),
    ] {
        assert_eq!(shard_key_hash(shard_key).unwrap(), hash, "{shard_key:?}");
    }
}

#[test]
fn a_shard_is_the_hash_modulo_their_number() {
    assert_eq!(shard_of(0x1ebe_118e_5a0e_fdb7, 256), 0xb7);
    assert_eq!(shard_of(u64::MAX, 1), 0);
    assert_eq!(shard_of(u64::MAX, u16::MAX), 0);
    assert_eq!(shard_of(u64::MAX - 1, u16::MAX), u16::MAX - 1);
    assert_eq!(shard_of(4_097, SHARDS_MAX), 1);
    assert_eq!(shard_of(7, 0), 0);
}

#[test]
fn carriers_and_days_of_a_week_leave_no_shard_empty() {
    let mut shard_keys: Vec<_> = flights()
        .map(|flight| format!("{}_{}", flight.carrier, flight.date.replace('-', "")))
        .collect();
    shard_keys.sort();
    shard_keys.dedup();
    assert_eq!(shard_keys.len(), 103);

    let hashes = shard_keys.iter().map(|key| shard_key_hash(key).unwrap());
    assert_spread(&per_shard::<16>(hashes));
}

#[test]
fn flights_of_a_week_are_spread_over_all_shards() {
    let hashes = flights().map(|flight| {
        let mut key = KeyEncoder::new();
        key.field("carrier", flight.carrier).unwrap();
        key.field("flight", &flight.number).unwrap();
        key.field("date", flight.date).unwrap();
        key.shard_hash()
    });
    assert_spread(&per_shard::<256>(hashes));
}

/// No shard is empty, and the fullest has at most twice its share.
fn assert_spread(counts: &[u32]) {
    let total: u32 = counts.iter().sum();
    let fair = total.div_ceil(u32::try_from(counts.len()).unwrap());
    assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
    assert!(counts.iter().all(|&count| count <= 2 * fair), "{counts:?}");
}

fn per_shard<const SHARDS: usize>(hashes: impl Iterator<Item = u64>) -> [u32; SHARDS] {
    let mut counts = [0; SHARDS];
    for hash in hashes {
        let shard = shard_of(hash, u16::try_from(SHARDS).unwrap());
        counts[usize::from(shard)] += 1;
    }
    counts
}

struct Flight {
    date: &'static str,
    carrier: &'static str,
    number: u32,
}

fn flights() -> impl Iterator<Item = Flight> {
    FLIGHTS.lines().skip(1).map(|line| {
        let fields: Vec<_> = line.split(',').collect();
        Flight {
            date: fields[0],
            carrier: fields[2],
            number: fields[3].parse().unwrap(),
        }
    })
}

#[test]
fn no_window_spreads_nothing() {
    assert_eq!(spread_offset(u64::MAX, Duration::ZERO), Duration::ZERO);
    let below_a_microsecond = Duration::from_nanos(999);
    assert_eq!(spread_offset(7, below_a_microsecond), Duration::ZERO);
}

#[test]
fn offsets_of_flights_fill_their_window() {
    let hour = Duration::from_secs(3_600);
    let mut tenths = [0; 10];
    for flight in flights() {
        let mut key = KeyEncoder::new();
        key.field("flight", &(flight.date, flight.carrier, flight.number))
            .unwrap();
        let offset = spread_offset(key.key("flight_job").to_u64(), hour);
        tenths[usize::try_from(offset.as_secs() / 360).unwrap()] += 1;
    }
    assert!(
        tenths.iter().all(|count| (500..720).contains(count)),
        "{tenths:?}"
    );
}

fn named(names: &[&str]) -> Vec<NodeName> {
    names.iter().map(|name| NodeName::from_row(name)).collect()
}

// Computed by another program. They never change: nodes of two releases that
// disagreed would both read a shard, or neither.
#[test]
fn owners_of_shards_never_change() {
    let members = named(&[
        "billing-1-00c0ffee",
        "billing-2-1f0e9a2c",
        "billing-3-deadbeef",
    ]);
    let owners: Vec<usize> = (0..16)
        .map(|shard_id| {
            let owner = owner_of(shard_id, &members).unwrap();
            1 + members.iter().position(|node| node == owner).unwrap()
        })
        .collect();
    assert_eq!(owners, [2, 1, 3, 1, 2, 2, 3, 2, 2, 1, 2, 3, 1, 3, 3, 2]);
}

#[test]
fn without_members_no_shard_has_an_owner() {
    assert_eq!(owner_of(0, &[]), None);
    let node = NodeName::from_row("gone");
    assert_eq!(shards_of(&node, &[], 8), BTreeSet::new());
    assert_eq!(shards_of(&node, &named(&["here"]), 8), BTreeSet::new());
}

#[test]
fn members_share_the_shards_evenly() {
    let members: Vec<_> = (0..8)
        .map(|no| NodeName::from_row(&format!("node-{no}")))
        .collect();
    for node in &members {
        let owned = shards_of(node, &members, 1024).len();
        assert!((96..=160).contains(&owned), "{node}: {owned} of 128");
    }
}

#[test]
fn a_node_that_joins_takes_about_its_part() {
    let members = named(&["a", "b", "c", "d"]);
    let joined = named(&["a", "b", "c", "d", "e"]);
    let taken = shards_of(&joined[4], &joined, 1024).len();
    assert!((154..=256).contains(&taken), "{taken} of 205");
    for node in &members {
        let before = shards_of(node, &members, 1024);
        let after = shards_of(node, &joined, 1024);
        assert!(after.is_subset(&before), "{node} took from another");
    }
}

proptest! {
    #[test]
    fn every_shard_has_one_owner_whatever_the_order(
        names in proptest::collection::btree_set("[a-z]{1,8}", 1..6),
        shards in 1..=64u16,
        seed in any::<u64>(),
    ) {
        let members: Vec<_> = names.iter().map(|name| NodeName::from_row(name)).collect();
        let mut shuffled = members.clone();
        shuffled.sort_by_key(|node| shard_key_hash(node.as_str()).unwrap() ^ seed);
        let mut owned = Vec::new();
        for node in &members {
            let shard_ids = shards_of(node, &members, shards);
            prop_assert_eq!(&shard_ids, &shards_of(node, &shuffled, shards));
            owned.extend(shard_ids);
        }
        owned.sort_unstable();
        prop_assert_eq!(owned, (0..shards).collect::<Vec<_>>());
    }

    #[test]
    fn no_shard_moves_between_two_that_stay(
        names in proptest::collection::btree_set("[a-z]{1,8}", 2..6),
    ) {
        let members: Vec<_> = names.iter().map(|name| NodeName::from_row(name)).collect();
        let (gone, stay) = members.split_first().unwrap();
        for shard_id in 0..32 {
            let before = owner_of(shard_id, &members).unwrap();
            if before != gone {
                prop_assert_eq!(owner_of(shard_id, stay), Some(before));
            }
        }
    }

    #[test]
    fn a_shard_is_below_their_number(hash in any::<u64>(), shards in 1..=u16::MAX) {
        prop_assert!(shard_of(hash, shards) < shards);
    }

    #[test]
    fn an_offset_is_below_its_window_and_stable(
        seed in any::<u64>(),
        window in any::<Duration>(),
        short_us in 1..1_000u64,
    ) {
        for window in [window, Duration::from_micros(short_us)] {
            let offset = spread_offset(seed, window);
            prop_assert!(offset < window.max(Duration::from_nanos(1)));
            prop_assert_eq!(offset, spread_offset(seed, window));
        }
    }
}
