use std::time::Duration;

use retryjob_core::{
    Backend, ErrorKind, Node,
    op::nodes::{FORGET_AFTER, FORGET_NODES_MAX, Heartbeat, Leave, NodeName},
};
use tokio::task::JoinSet;

use crate::{
    TestDatabase,
    jobs::{JOB, MAIL},
};

const MEMBER_FOR: Duration = Duration::from_secs(60);

async fn beat(backend: &impl Backend, node: &Node) -> Vec<NodeName> {
    let heartbeat = Heartbeat {
        node: node.name().clone(),
        member_for: MEMBER_FOR,
    };
    backend.heartbeat(heartbeat).await.unwrap().names
}

async fn leave(backend: &impl Backend, node: &Node) {
    let node = node.name().clone();
    backend.leave(Leave { node }).await.unwrap();
}

fn sorted<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> Vec<NodeName> {
    let mut names: Vec<_> = nodes.into_iter().map(|node| node.name().clone()).collect();
    names.sort();
    names
}

pub async fn members_are_the_nodes_whose_heartbeat_stands<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let [a, b] = ["a", "b"].map(Node::new);
    assert_eq!(beat(&backend, &a).await, sorted([&a]));
    assert_eq!(beat(&backend, &b).await, sorted([&a, &b]));

    db.pass(&JOB, MEMBER_FOR / 2).await;
    assert_eq!(beat(&backend, &b).await, sorted([&a, &b]));
    // By now `a` has been silent for longer than it is a member.
    db.pass(&JOB, MEMBER_FOR / 2 + Duration::from_secs(1)).await;
    assert_eq!(beat(&backend, &b).await, sorted([&b]));
    assert_eq!(beat(&backend, &a).await, sorted([&a, &b]));
}

pub async fn a_node_that_left_is_no_member<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let [a, b] = ["a", "b"].map(Node::new);
    beat(&backend, &a).await;
    beat(&backend, &b).await;
    leave(&backend, &a).await;
    assert_eq!(beat(&backend, &b).await, sorted([&b]));
    // Leaving again is no error, and neither is coming back.
    leave(&backend, &a).await;
    assert_eq!(beat(&backend, &a).await, sorted([&a, &b]));
}

pub async fn job_types_keep_their_nodes_apart<D: TestDatabase>(db: D) {
    let jobs = db.installed(&JOB).await;
    let mails = jobs.for_schema(&MAIL);
    mails.install().await.unwrap();
    let [a, b] = ["a", "b"].map(Node::new);
    assert_eq!(beat(&jobs, &a).await, sorted([&a]));
    assert_eq!(beat(&mails, &b).await, sorted([&b]));
    leave(&mails, &a).await;
    assert_eq!(beat(&jobs, &b).await, sorted([&a, &b]));
}

pub async fn many_nodes_beat_at_once_without_an_error<D: TestDatabase>(db: D) {
    const NODES: usize = 12;
    let backend = db.installed(&JOB).await;
    let nodes: Vec<_> = (0..NODES).map(|_| Node::new("one-of-many")).collect();
    let mut beating = JoinSet::new();
    for node in nodes.clone() {
        let backend = backend.clone();
        beating.spawn(async move {
            for round in 0..20 {
                let members = beat(&backend, &node).await;
                assert!(members.contains(node.name()), "round {round}");
                if round % 5 == 4 {
                    leave(&backend, &node).await;
                }
            }
            beat(&backend, &node).await;
        });
    }
    beating.join_all().await;
    assert_eq!(beat(&backend, &nodes[0]).await, sorted(&nodes));
}

/// A heartbeat that is sent again while the first is under way.
pub async fn one_node_may_join_several_times_at_once<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    for _ in 0..20 {
        let node = Node::new("twice");
        let mut beating = JoinSet::new();
        for _ in 0..4 {
            let (backend, node) = (backend.clone(), node.clone());
            beating.spawn(async move { beat(&backend, &node).await });
        }
        for members in beating.join_all().await {
            assert!(members.contains(node.name()));
        }
        leave(&backend, &node).await;
    }
}

pub async fn nodes_that_lapsed_long_ago_are_forgotten<D: TestDatabase>(db: D) {
    let backend = db.installed(&JOB).await;
    let others: Vec<_> = (0..=FORGET_NODES_MAX).map(|_| Node::new("gone")).collect();
    for other in &others {
        beat(&backend, other).await;
    }
    // Lapsed, and still there for people to see.
    db.pass(&JOB, MEMBER_FOR * 2).await;
    let last = Node::new("last");
    assert_eq!(beat(&backend, &last).await, sorted([&last]));
    assert_eq!(db.nodes(&JOB).await, sorted(others.iter().chain([&last])));

    db.pass(&JOB, FORGET_AFTER).await;
    // No heartbeat works for longer than it has to.
    beat(&backend, &last).await;
    assert_eq!(db.nodes(&JOB).await.len(), 2);
    beat(&backend, &last).await;
    assert_eq!(db.nodes(&JOB).await, sorted([&last]));
}

pub async fn heartbeat_without_the_table_says_what_to_run<D: TestDatabase>(db: D) {
    let backend = db.connect(&JOB).await;
    let heartbeat = Heartbeat {
        node: Node::new("early").name().clone(),
        member_for: MEMBER_FOR,
    };
    let error = backend.heartbeat(heartbeat).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Schema);
    assert!(error.to_string().contains("install"), "{error}");
}
