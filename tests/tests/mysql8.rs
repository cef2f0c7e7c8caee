//! The suite on MySQL 9.x, which `tests/servers up` starts.

retryjob_tests::conformance!(retryjob_tests::Mysql8Server);
retryjob_tests::conformance_sql!(retryjob_tests::Mysql8Server);
retryjob_tests::conformance_mysql!(retryjob_tests::Mysql8Server);
retryjob_tests::conformance_skip_locked!(retryjob_tests::Mysql8Server);
retryjob_tests::worker_conformance!(retryjob_tests::Mysql8Server);
retryjob_tests::worker_conformance_sql!(retryjob_tests::Mysql8Server);
retryjob_tests::suite_under_settings!(Mysql8);
