use std::collections::HashSet;

use crate::op::claim::{LeaseOwner, NODE_BYTES_MAX, Node};

/// What the `lease_owner` column holds, at most.
const LEASE_OWNER_BYTES_MAX: usize = 64;

#[test]
fn a_node_keeps_letters_digits_dots_underscores_and_dashes() {
    let node = Node::new("bil'ling; é🚀\n:node_7.eu-west");
    assert_eq!(
        without_suffix(node.name().as_str()),
        "billingnode_7.eu-west"
    );
    assert_eq!(without_suffix(Node::new("").name().as_str()), "");
}

#[test]
fn two_nodes_of_one_name_are_told_apart() {
    let names: HashSet<_> = (0..100)
        .map(|_| Node::new("billing").name().clone())
        .collect();
    // Of 100 suffixes of 32 bits two are equal once in a million runs.
    assert!(names.len() >= 99, "{} of 100", names.len());
}

#[test]
fn each_claim_has_an_owner_of_its_own_also_through_clones() {
    let node = Node::new("billing-7");
    let clone = node.clone();
    let owners: Vec<_> = [&node, &clone, &node]
        .map(|node| node.lease_owner().as_str().to_owned())
        .into();
    let want: Vec<_> = (0..3).map(|no| format!("{}:{no}", node.name())).collect();
    assert_eq!(owners, want);
}

#[test]
fn the_longest_owner_fits_its_column() {
    let node = Node::new(&"n".repeat(1_000));
    assert_eq!(node.name().as_str().len(), NODE_BYTES_MAX);
    let last = format!("{}:{}", node.name(), u64::MAX);
    assert!(last.len() <= LEASE_OWNER_BYTES_MAX, "{}", last.len());
}

#[test]
fn an_owner_is_the_text_that_its_row_holds() {
    let node = Node::new("billing-7");
    let owner = node.lease_owner();
    assert_eq!(LeaseOwner::from_row(owner.as_str()), owner);
    assert_eq!(owner.to_string(), owner.as_str());
}

fn without_suffix(name: &str) -> &str {
    let (kept, suffix) = name.rsplit_once('-').unwrap();
    assert_eq!(suffix.len(), 8);
    assert!(suffix.bytes().all(|byte| byte.is_ascii_hexdigit()));
    kept
}
