//! Assertions for users' tests.

/// Asserts that a [`Memory`](crate::memory::Memory) holds a job that matches a
/// pattern, in whatever status.
///
/// The pattern names the job's type; a guard may follow, as in `match`.
///
/// # Panics
///
/// When there is none, with the rows that are there.
///
/// # Examples
///
/// ```no_run
/// # use retryjob_core::{
/// #     DecodeError, EncodeError, Ident, JobSchema, RetryJob, assert_enqueued,
/// #     job::{Encoded, Parts}, memory::Memory,
/// # };
/// # struct Mail { to: String, urgent: bool }
/// # impl RetryJob for Mail {
/// #     const SCHEMA: JobSchema = JobSchema::new(Ident::new("mail"));
/// #     fn encode(&self) -> Result<Encoded, EncodeError> { unimplemented!() }
/// #     fn decode(_: Parts) -> Result<Self, DecodeError> { unimplemented!() }
/// # }
/// # fn check(memory: Memory) {
/// assert_enqueued!(memory, Mail { urgent: true, .. });
/// assert_enqueued!(memory, Mail { to, .. } if to == "ada@example.org");
/// # }
/// ```
#[macro_export]
macro_rules! assert_enqueued {
    ($memory:expr, $job:ident $fields:tt $(if $guard:expr)? $(,)?) => {{
        let jobs = $memory.jobs::<$job>();
        let found = jobs.iter().any(|(_, job)| match job {
            $job $fields $(if $guard)? => true,
            #[allow(unreachable_patterns, reason = "a pattern may match every job")]
            _ => false,
        });
        assert!(
            found,
            "no job matches `{}` among {:#?}",
            stringify!($job $fields $(if $guard)?),
            jobs.iter().map(|(row, _)| row).collect::<Vec<_>>(),
        );
    }};
}
