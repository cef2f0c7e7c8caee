//! The suite on the reference backend.

retryjob_tests::conformance!(retryjob_tests::InMemory);
retryjob_tests::worker_conformance!(retryjob_tests::InMemory);
