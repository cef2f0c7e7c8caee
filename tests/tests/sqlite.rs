//! The suite on SQLite.

retryjob_tests::conformance!(retryjob_tests::SqliteFile);
retryjob_tests::conformance_sql!(retryjob_tests::SqliteFile);
retryjob_tests::worker_conformance!(retryjob_tests::SqliteFile);
retryjob_tests::worker_conformance_sql!(retryjob_tests::SqliteFile);
