//! The suite on the reference backend.

retryjob_tests::conformance!(retryjob_tests::InMemory);
