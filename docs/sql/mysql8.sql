-- Every statement that the job table `billing_job` of tests/src/samples.rs sends on mysql8.
-- Generated from the catalogue; `RETRYJOB_WRITE_DOCS=1 cargo test -p retryjob-tests --test sql`
-- writes it anew. Lists are shown with one entry; they are padded to a few lengths.

CREATE TABLE `billing_job` ( `id` bigint unsigned NOT NULL PRIMARY KEY AUTO_INCREMENT, `shard_id` smallint unsigned NOT NULL, `status` tinyint unsigned NOT NULL, `next_attempt_at` datetime(6) NOT NULL, `due_at` datetime(6) NOT NULL, `attempt_no` smallint unsigned NOT NULL, `lease_owner` varchar(64) collate utf8mb4_bin NULL, `lease_seq` bigint unsigned NOT NULL, `lease_until` datetime(6) NULL, `idempotency_key` binary(32) NOT NULL, `payload` longtext collate utf8mb4_bin NOT NULL, `last_error` longtext collate utf8mb4_bin NULL, `created_at` datetime(6) NOT NULL, `updated_at` datetime(6) NOT NULL, `service_id` bigint unsigned NOT NULL, KEY `claim` (`shard_id`, `status`, `next_attempt_at`, `id`), KEY `lease` (`status`, `lease_until`, `id`), UNIQUE KEY `idempotency_key` (`idempotency_key`), KEY `service_id` (`service_id`) ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE `retryjob_node` ( `job_table` varchar(64) collate utf8mb4_bin NOT NULL, `node` varchar(40) collate utf8mb4_bin NOT NULL, `member_until` datetime(6) NOT NULL, PRIMARY KEY (`job_table`, `node`) ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;

-- insert
INSERT INTO `billing_job` (`shard_id`, `status`, `next_attempt_at`, `due_at`, `attempt_no`, `lease_seq`, `idempotency_key`, `created_at`, `updated_at`, `payload`, `service_id`) VALUES (?, 0, TIMESTAMPADD(MICROSECOND, ?, COALESCE(?, UTC_TIMESTAMP(6))), TIMESTAMPADD(MICROSECOND, ?, COALESCE(?, UTC_TIMESTAMP(6))), 0, 0, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), ?, ?);

-- find_keys
SELECT `id`, `idempotency_key` FROM `billing_job` FORCE INDEX (`idempotency_key`) WHERE `idempotency_key` IN (?) LOCK IN SHARE MODE;

-- heads
SELECT 0, `shard_id`, MIN(`next_attempt_at`), UTC_TIMESTAMP(6) FROM `billing_job` FORCE INDEX (`claim`) WHERE `status` = 0 GROUP BY `shard_id` UNION ALL (SELECT 4, `shard_id`, MIN(`next_attempt_at`), UTC_TIMESTAMP(6) FROM `billing_job` FORCE INDEX (`claim`) WHERE `status` = 4 GROUP BY `shard_id`) UNION ALL (SELECT NULL, CAST(NULL AS UNSIGNED), NULL, UTC_TIMESTAMP(6));

-- clock
SELECT UTC_TIMESTAMP(6);

-- pick_fresh
SELECT `id`, `shard_id`, `attempt_no`, `lease_seq`, `next_attempt_at`, `idempotency_key`, TIMESTAMPDIFF(MICROSECOND, `due_at`, UTC_TIMESTAMP(6)) AS `age_us`, TIMESTAMPDIFF(MICROSECOND, `next_attempt_at`, UTC_TIMESTAMP(6)) AS `lag_us`, `payload`, `service_id` FROM `billing_job` FORCE INDEX (`claim`) WHERE `shard_id` = ? AND `status` = 0 AND `next_attempt_at` >= ? AND `next_attempt_at` <= UTC_TIMESTAMP(6) ORDER BY `next_attempt_at` ASC, `id` ASC LIMIT ? FOR UPDATE SKIP LOCKED;

-- pick_retry
SELECT `id`, `shard_id`, `attempt_no`, `lease_seq`, `next_attempt_at`, `idempotency_key`, TIMESTAMPDIFF(MICROSECOND, `due_at`, UTC_TIMESTAMP(6)) AS `age_us`, TIMESTAMPDIFF(MICROSECOND, `next_attempt_at`, UTC_TIMESTAMP(6)) AS `lag_us`, `payload`, `service_id` FROM `billing_job` FORCE INDEX (`claim`) WHERE `shard_id` = ? AND `status` = 4 AND `next_attempt_at` >= ? AND `attempt_no` + (`lease_owner` IS NULL) < 6 AND `next_attempt_at` <= UTC_TIMESTAMP(6) ORDER BY `next_attempt_at` ASC, `id` ASC LIMIT ? FOR UPDATE SKIP LOCKED;

-- pick_alone
SELECT `id`, `shard_id`, `attempt_no`, `lease_seq`, `next_attempt_at`, `idempotency_key`, TIMESTAMPDIFF(MICROSECOND, `due_at`, UTC_TIMESTAMP(6)) AS `age_us`, TIMESTAMPDIFF(MICROSECOND, `next_attempt_at`, UTC_TIMESTAMP(6)) AS `lag_us`, `payload`, `service_id` FROM `billing_job` FORCE INDEX (`claim`) WHERE `shard_id` = ? AND `status` = 4 AND `next_attempt_at` >= ? AND `next_attempt_at` <= UTC_TIMESTAMP(6) ORDER BY `next_attempt_at` ASC, `id` ASC LIMIT ? FOR UPDATE SKIP LOCKED;

-- take_fresh
UPDATE `billing_job` SET `status` = 1, `attempt_no` = `attempt_no` + 1, `lease_seq` = `lease_seq` + 1, `lease_owner` = ?, `lease_until` = TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(6)), `updated_at` = UTC_TIMESTAMP(6) WHERE `status` + 0 = 0 AND `id` IN (?);

-- take_retry
UPDATE `billing_job` SET `status` = 1, `attempt_no` = `attempt_no` + 1, `lease_seq` = `lease_seq` + 1, `lease_owner` = ?, `lease_until` = TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(6)), `updated_at` = UTC_TIMESTAMP(6) WHERE `status` + 0 = 4 AND `id` IN (?);

-- won
SELECT `id` FROM `billing_job` WHERE `id` IN (?) AND `status` + 0 = 1 AND `lease_owner` = ?;

-- renew
UPDATE `billing_job` SET `lease_until` = TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(6)) WHERE `status` + 0 = 1 AND (`id` = ? AND `lease_seq` = ? AND `lease_owner` = ?) AND `lease_until` >= UTC_TIMESTAMP(6);

-- live
SELECT `id` FROM `billing_job` WHERE `status` + 0 = 1 AND (`id` = ? AND `lease_seq` = ? AND `lease_owner` = ?) AND `lease_until` >= UTC_TIMESTAMP(6);

-- succeed
UPDATE `billing_job` SET `status` = 2, `lease_until` = NULL, `updated_at` = UTC_TIMESTAMP(6) WHERE `status` + 0 = 1 AND `lease_owner` = ? AND (`lease_seq` = ? AND `id` IN (?)) AND `lease_until` >= UTC_TIMESTAMP(6);

-- settle
UPDATE `billing_job` SET `status` = (CASE WHEN (`id` = ?) THEN ? END), `next_attempt_at` = TIMESTAMPADD(MICROSECOND, (CASE WHEN (`id` = ?) THEN ? END), UTC_TIMESTAMP(6)), `attempt_no` = (CASE WHEN (`id` = ?) THEN ? END), `last_error` = COALESCE((CASE WHEN (`id` = ?) THEN ? END), `last_error`), `lease_until` = NULL, `updated_at` = UTC_TIMESTAMP(6) WHERE `status` + 0 = 1 AND (`id` = ? AND `lease_seq` = ? AND `lease_owner` = ?) AND `lease_until` >= UTC_TIMESTAMP(6);

-- outcome
SELECT `id`, `status`, `attempt_no`, `lease_seq`, `lease_owner` FROM `billing_job` WHERE `id` IN (?);

-- lapsed
SELECT `id`, `lease_owner`, `lease_seq`, `attempt_no`, TIMESTAMPDIFF(MICROSECOND, `due_at`, UTC_TIMESTAMP(6)) AS `age_us` FROM `billing_job` FORCE INDEX (`lease`) WHERE `status` = 1 AND `lease_until` < UTC_TIMESTAMP(6) ORDER BY `lease_until` ASC, `id` ASC LIMIT ?;

-- settle_lapsed
UPDATE `billing_job` SET `status` = (CASE WHEN (`id` = ?) THEN ? END), `next_attempt_at` = TIMESTAMPADD(MICROSECOND, (CASE WHEN (`id` = ?) THEN ? END), UTC_TIMESTAMP(6)), `attempt_no` = (CASE WHEN (`id` = ?) THEN ? END), `last_error` = COALESCE((CASE WHEN (`id` = ?) THEN ? END), `last_error`), `lease_until` = NULL, `updated_at` = UTC_TIMESTAMP(6), `lease_owner` = NULL WHERE `status` + 0 = 1 AND (`id` = ? AND `lease_seq` = ? AND `lease_owner` = ?) AND `lease_until` < UTC_TIMESTAMP(6);

-- look
SELECT `id`, `status` FROM `billing_job` FORCE INDEX (`PRIMARY`) WHERE `id` IN (?) ORDER BY `id` ASC FOR UPDATE;

-- hold
UPDATE `billing_job` SET `status` = 6, `updated_at` = UTC_TIMESTAMP(6), `last_error` = COALESCE(?, `last_error`) WHERE `id` IN (?) AND `status` + 0 IN (0, 4, 5);

-- release
UPDATE `billing_job` SET `status` = 0, `updated_at` = UTC_TIMESTAMP(6), `next_attempt_at` = UTC_TIMESTAMP(6), `due_at` = UTC_TIMESTAMP(6), `attempt_no` = 0, `lease_owner` = NULL WHERE `id` IN (?) AND `status` + 0 = 6;

-- cancel
UPDATE `billing_job` SET `status` = 3, `updated_at` = UTC_TIMESTAMP(6), `last_error` = COALESCE(?, `last_error`) WHERE `id` IN (?) AND `status` + 0 IN (0, 4, 5, 6);

-- requeue
UPDATE `billing_job` SET `status` = 0, `updated_at` = UTC_TIMESTAMP(6), `next_attempt_at` = UTC_TIMESTAMP(6), `due_at` = UTC_TIMESTAMP(6), `attempt_no` = 0, `lease_owner` = NULL WHERE `id` IN (?) AND `status` + 0 IN (2, 3, 5);

-- any_open
SELECT EXISTS(SELECT `id` FROM `billing_job` FORCE INDEX (`lease`) WHERE `status` = 0) OR EXISTS(SELECT `id` FROM `billing_job` FORCE INDEX (`lease`) WHERE `status` = 4) OR EXISTS(SELECT `id` FROM `billing_job` FORCE INDEX (`lease`) WHERE `status` = 1);

-- counts
SELECT `status`, COUNT(*) FROM `billing_job` FORCE INDEX (`lease`) GROUP BY `status`;

-- node_join
INSERT INTO `retryjob_node` (`job_table`, `node`, `member_until`) VALUES (?, ?, TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(6)));

-- node_stay
UPDATE `retryjob_node` SET `member_until` = TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(6)) WHERE `job_table` = ? AND `node` = ?;

-- nodes
SELECT `node`, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), `member_until`) AS `left_us` FROM `retryjob_node` WHERE `job_table` = ? ORDER BY `node` ASC;

-- node_forget
DELETE FROM `retryjob_node` WHERE `job_table` = ? AND `node` = ? AND TIMESTAMPADD(MICROSECOND, ?, `member_until`) < UTC_TIMESTAMP(6);

-- node_leave
DELETE FROM `retryjob_node` WHERE `job_table` = ? AND `node` = ?;

