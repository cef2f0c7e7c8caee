-- Every statement that the job table `billing_job` of tests/src/samples.rs sends on sqlite.
-- Generated from the catalogue; `RETRYJOB_WRITE_DOCS=1 cargo test -p retryjob-tests --test sql`
-- writes it anew. Lists are shown with one entry; they are padded to a few lengths.

CREATE TABLE "billing_job" ( "id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "shard_id" INTEGER NOT NULL, "status" INTEGER NOT NULL, "next_attempt_at" INTEGER NOT NULL, "due_at" INTEGER NOT NULL, "attempt_no" INTEGER NOT NULL, "lease_owner" TEXT NULL, "lease_seq" INTEGER NOT NULL, "lease_until" INTEGER NULL, "idempotency_key" BLOB NOT NULL, "payload" TEXT NOT NULL, "last_error" TEXT NULL, "created_at" INTEGER NOT NULL, "updated_at" INTEGER NOT NULL, "service_id" INTEGER NOT NULL );

CREATE INDEX "billing_job_claim" ON "billing_job" ("shard_id", "status", "next_attempt_at", "id");

CREATE INDEX "billing_job_lease" ON "billing_job" ("status", "lease_until", "id");

CREATE UNIQUE INDEX "billing_job_idempotency_key" ON "billing_job" ("idempotency_key");

CREATE INDEX "billing_job_service_id" ON "billing_job" ("service_id");

CREATE TABLE "retryjob_node" ( "job_table" TEXT NOT NULL, "node" TEXT NOT NULL, "member_until" INTEGER NOT NULL, PRIMARY KEY ("job_table", "node") );

-- insert
INSERT INTO "billing_job" ("shard_id", "status", "next_attempt_at", "due_at", "attempt_no", "lease_seq", "idempotency_key", "created_at", "updated_at", "payload", "service_id") VALUES (?, 0, COALESCE(?, CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000)) + ?, COALESCE(?, CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000)) + ?, 0, 0, ?, CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000), CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000), ?, ?);

-- find_keys
SELECT "id", "idempotency_key" FROM "billing_job" WHERE "idempotency_key" IN (?);

-- heads
SELECT 0, "shard_id", MIN("next_attempt_at"), CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000) FROM "billing_job" WHERE "status" = 0 GROUP BY "shard_id" UNION ALL SELECT 4, "shard_id", MIN("next_attempt_at"), CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000) FROM "billing_job" WHERE "status" = 4 GROUP BY "shard_id" UNION ALL SELECT NULL, CAST(NULL AS UNSIGNED), NULL, CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000);

-- clock
SELECT CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000);

-- pick_fresh
SELECT "id", "shard_id", "attempt_no", "lease_seq", "next_attempt_at", "idempotency_key", (CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000)) - "due_at" AS "age_us", (CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000)) - "next_attempt_at" AS "lag_us", "payload", "service_id" FROM "billing_job" WHERE "shard_id" = ? AND "status" = 0 AND "next_attempt_at" >= ? AND "next_attempt_at" <= CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000) ORDER BY "next_attempt_at" ASC, "id" ASC LIMIT ?;

-- pick_retry
SELECT "id", "shard_id", "attempt_no", "lease_seq", "next_attempt_at", "idempotency_key", (CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000)) - "due_at" AS "age_us", (CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000)) - "next_attempt_at" AS "lag_us", "payload", "service_id" FROM "billing_job" WHERE "shard_id" = ? AND "status" = 4 AND "next_attempt_at" >= ? AND "attempt_no" + ("lease_owner" IS NULL) < 6 AND "next_attempt_at" <= CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000) ORDER BY "next_attempt_at" ASC, "id" ASC LIMIT ?;

-- pick_alone
SELECT "id", "shard_id", "attempt_no", "lease_seq", "next_attempt_at", "idempotency_key", (CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000)) - "due_at" AS "age_us", (CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000)) - "next_attempt_at" AS "lag_us", "payload", "service_id" FROM "billing_job" WHERE "shard_id" = ? AND "status" = 4 AND "next_attempt_at" >= ? AND "next_attempt_at" <= CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000) ORDER BY "next_attempt_at" ASC, "id" ASC LIMIT ?;

-- take_fresh
UPDATE "billing_job" SET "status" = 1, "attempt_no" = "attempt_no" + 1, "lease_seq" = "lease_seq" + 1, "lease_owner" = ?, "lease_until" = (CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000)) + ?, "updated_at" = CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000) WHERE "status" + 0 = 0 AND "id" IN (?);

-- take_retry
UPDATE "billing_job" SET "status" = 1, "attempt_no" = "attempt_no" + 1, "lease_seq" = "lease_seq" + 1, "lease_owner" = ?, "lease_until" = (CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000)) + ?, "updated_at" = CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000) WHERE "status" + 0 = 4 AND "id" IN (?);

-- won
SELECT "id" FROM "billing_job" WHERE "id" IN (?) AND "status" + 0 = 1 AND "lease_owner" = ?;

-- renew
UPDATE "billing_job" SET "lease_until" = (CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000)) + ? WHERE "status" + 0 = 1 AND ("id" = ? AND "lease_seq" = ? AND "lease_owner" = ?) AND "lease_until" >= CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000);

-- live
SELECT "id" FROM "billing_job" WHERE "status" + 0 = 1 AND ("id" = ? AND "lease_seq" = ? AND "lease_owner" = ?) AND "lease_until" >= CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000);

-- succeed
UPDATE "billing_job" SET "status" = 2, "lease_until" = NULL, "updated_at" = CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000) WHERE "status" + 0 = 1 AND "lease_owner" = ? AND ("lease_seq" = ? AND "id" IN (?)) AND "lease_until" >= CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000);

-- settle
UPDATE "billing_job" SET "status" = (CASE WHEN ("id" = ?) THEN ? END), "next_attempt_at" = (CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000)) + (CASE WHEN ("id" = ?) THEN ? END), "attempt_no" = (CASE WHEN ("id" = ?) THEN ? END), "last_error" = COALESCE((CASE WHEN ("id" = ?) THEN ? END), "last_error"), "lease_until" = NULL, "updated_at" = CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000) WHERE "status" + 0 = 1 AND ("id" = ? AND "lease_seq" = ? AND "lease_owner" = ?) AND "lease_until" >= CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000);

-- outcome
SELECT "id", "status", "attempt_no", "lease_seq", "lease_owner" FROM "billing_job" WHERE "id" IN (?);

-- lapsed
SELECT "id", "lease_owner", "lease_seq", "attempt_no", (CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000)) - "due_at" AS "age_us" FROM "billing_job" WHERE "status" = 1 AND "lease_until" < CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000) ORDER BY "lease_until" ASC, "id" ASC LIMIT ?;

-- settle_lapsed
UPDATE "billing_job" SET "status" = (CASE WHEN ("id" = ?) THEN ? END), "next_attempt_at" = (CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000)) + (CASE WHEN ("id" = ?) THEN ? END), "attempt_no" = (CASE WHEN ("id" = ?) THEN ? END), "last_error" = COALESCE((CASE WHEN ("id" = ?) THEN ? END), "last_error"), "lease_until" = NULL, "updated_at" = CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000), "lease_owner" = NULL WHERE "status" + 0 = 1 AND ("id" = ? AND "lease_seq" = ? AND "lease_owner" = ?) AND "lease_until" < CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000);

-- look
SELECT "id", "status" FROM "billing_job" WHERE "id" IN (?) ORDER BY "id" ASC;

-- hold
UPDATE "billing_job" SET "status" = 6, "updated_at" = CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000), "last_error" = COALESCE(?, "last_error") WHERE "id" IN (?) AND "status" + 0 IN (0, 4, 5);

-- release
UPDATE "billing_job" SET "status" = 0, "updated_at" = CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000), "next_attempt_at" = CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000), "due_at" = CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000), "attempt_no" = 0, "lease_owner" = NULL WHERE "id" IN (?) AND "status" + 0 = 6;

-- cancel
UPDATE "billing_job" SET "status" = 3, "updated_at" = CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000), "last_error" = COALESCE(?, "last_error") WHERE "id" IN (?) AND "status" + 0 IN (0, 4, 5, 6);

-- requeue
UPDATE "billing_job" SET "status" = 0, "updated_at" = CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000), "next_attempt_at" = CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000), "due_at" = CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000), "attempt_no" = 0, "lease_owner" = NULL WHERE "id" IN (?) AND "status" + 0 IN (2, 3, 5);

-- any_open
SELECT EXISTS(SELECT "id" FROM "billing_job" WHERE "status" = 0) OR EXISTS(SELECT "id" FROM "billing_job" WHERE "status" = 4) OR EXISTS(SELECT "id" FROM "billing_job" WHERE "status" = 1);

-- counts
SELECT "status", COUNT(*) FROM "billing_job" GROUP BY "status";

-- node_join
INSERT INTO "retryjob_node" ("job_table", "node", "member_until") VALUES (?, ?, (CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000)) + ?);

-- node_stay
UPDATE "retryjob_node" SET "member_until" = (CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000)) + ? WHERE "job_table" = ? AND "node" = ?;

-- nodes
SELECT "node", "member_until" - (CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000)) AS "left_us" FROM "retryjob_node" WHERE "job_table" = ? ORDER BY "node" ASC;

-- node_forget
DELETE FROM "retryjob_node" WHERE "job_table" = ? AND "node" = ? AND "member_until" + ? < CAST(ROUND(unixepoch('now', 'subsec') * (1000)) AS INTEGER) * (1000);

-- node_leave
DELETE FROM "retryjob_node" WHERE "job_table" = ? AND "node" = ?;

