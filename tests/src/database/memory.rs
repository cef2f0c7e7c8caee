//! The reference backend.

use std::time::Duration;

use retryjob_core::{
    Backend as _, DbTime, JobSchema, Memory,
    memory::{JOB_BYTES_MAX, JobRow, MemoryConnection},
    op::{finish::Finish, nodes::NodeName, reap::Lapsed},
};

use super::TestDatabase;
use crate::jobs::{NOTE, random_job};

/// A [`Memory`] for one test.
#[derive(Debug)]
pub struct InMemory(Memory);

impl TestDatabase for InMemory {
    type Backend = Memory;

    const BAD_URLS: &'static [&'static str] = &["", "memory", "sqlite:x", "mysql://localhost/x"];

    const CLOCK_RUNS: bool = false;

    async fn create() -> Self {
        // The tables of the job types under test are not there yet.
        Self(Memory::new(&NOTE))
    }

    async fn connect(&self, schema: &'static JobSchema) -> Memory {
        self.0.for_schema(schema)
    }

    async fn rows(&self, schema: &'static JobSchema) -> Vec<JobRow> {
        self.0.for_schema(schema).rows()
    }

    async fn history(&self, schema: &'static JobSchema) -> Vec<JobRow> {
        self.0.for_schema(schema).history()
    }

    async fn memberships(&self, schema: &'static JobSchema) -> Vec<(NodeName, DbTime)> {
        self.0.for_schema(schema).nodes()
    }

    async fn pass(&self, _: &'static JobSchema, span: Duration) {
        self.0.clock().advance(span);
    }

    async fn note(&self, connection: &mut MemoryConnection) {
        let note = vec![random_job()];
        self.0.enqueue_in(connection, note).await.unwrap();
    }

    async fn notes(&self) -> usize {
        self.0.rows().len()
    }

    async fn look_lapsed(backend: &Memory, limit: u16) -> Vec<Lapsed> {
        backend.look_lapsed(limit).await.unwrap()
    }

    async fn take_back(backend: &Memory, lapsed: Vec<Lapsed>) -> Vec<Finish> {
        backend.take_back(lapsed).await.unwrap()
    }

    async fn oversize_bytes(&self) -> Option<usize> {
        Some(JOB_BYTES_MAX)
    }
}
