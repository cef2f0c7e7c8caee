//! The suite on MariaDB with `mysql57`, the backend for many workers there:
//! docs/decisions/0009.

retryjob_tests::conformance!(retryjob_tests::Mariadb57);
retryjob_tests::conformance_sql!(retryjob_tests::Mariadb57);
retryjob_tests::conformance_mysql!(retryjob_tests::Mariadb57);
retryjob_tests::conformance_compare_and_set!(retryjob_tests::Mariadb57);
retryjob_tests::worker_conformance!(retryjob_tests::Mariadb57);
retryjob_tests::worker_conformance_sql!(retryjob_tests::Mariadb57);
