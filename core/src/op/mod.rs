//! The operations: one file each, with its request, its answer and its rules.

pub mod enqueue;

pub mod due;

pub mod claim;

pub mod renew;

pub mod finish;

pub mod reap;

pub mod operate;

pub mod counts;

pub mod nodes;

pub mod shards;

pub mod doctor;
