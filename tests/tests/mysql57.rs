//! The suite on MySQL 5.7, which `tests/servers up` starts.

retryjob_tests::conformance!(retryjob_tests::Mysql57Server);
retryjob_tests::conformance_sql!(retryjob_tests::Mysql57Server);
retryjob_tests::conformance_mysql!(retryjob_tests::Mysql57Server);
retryjob_tests::conformance_compare_and_set!(retryjob_tests::Mysql57Server);
retryjob_tests::worker_conformance!(retryjob_tests::Mysql57Server);
retryjob_tests::worker_conformance_sql!(retryjob_tests::Mysql57Server);
retryjob_tests::suite_under_settings!(Mysql57);
