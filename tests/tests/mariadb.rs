//! The suite on MariaDB, which `tests/servers up` starts.

retryjob_tests::conformance!(retryjob_tests::Mariadb);
retryjob_tests::conformance_sql!(retryjob_tests::Mariadb);
retryjob_tests::conformance_mysql!(retryjob_tests::Mariadb);
retryjob_tests::conformance_skip_locked!(retryjob_tests::Mariadb);
retryjob_tests::worker_conformance!(retryjob_tests::Mariadb);
retryjob_tests::worker_conformance_sql!(retryjob_tests::Mariadb);
retryjob_tests::suite_under_settings!(Mariadb);
