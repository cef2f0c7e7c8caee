//! The one list of tests.

/// The tests that every database passes.
#[macro_export]
macro_rules! conformance {
    ($database:ty) => {
        $crate::conformance! { tests, $database }
    };
    ($each:ident, $database:ty) => {
        $crate::$each! { $database;
            install {
                connect_refuses_a_url_it_cannot_use,
                install_creates_once_and_verifies_afterwards,
                install_by_several_nodes_at_once_agrees,
                install_of_several_job_types_at_once_agrees,
                install_names_every_difference_and_changes_nothing,
                job_types_of_one_database_keep_apart,
            }
            enqueue {
                enqueue_says_which_keys_were_already_there,
                enqueue_of_many_is_all_or_nothing,
                enqueue_answers_in_the_order_of_the_call,
                enqueue_of_nothing_is_nothing,
                enqueue_counts_due_and_spread_from_its_own_now,
                oversize_payload_is_refused_before_anything_is_sent,
                batches_beyond_rows_and_bytes_of_one_statement_are_stored,
                the_same_keys_enqueued_at_once_make_one_job_each,
            }
            keys {
                keys_that_collations_take_for_the_same_stay_apart,
            }
            values {
                values_come_back_as_they_were_stored,
                null_comes_back_as_null,
                payload_is_kept_byte_for_byte,
            }
            transaction {
                enqueue_in_follows_the_callers_transaction,
                enqueue_in_says_which_keys_were_already_there,
                finish_in_commits_with_the_callers_writes,
                finish_in_tells_a_late_finisher,
            }
            due {
                due_heads_name_the_earliest_job_of_every_shard,
                due_heads_keep_lanes_apart,
                job_to_run_now_is_claimed_at_once_at_any_fraction_of_a_second,
                job_is_claimed_from_its_microsecond_on_and_not_before,
                job_due_later_is_claimed_when_its_time_has_come,
            }
            claim {
                claim_takes_due_jobs_oldest_first,
                claim_hands_out_what_the_row_holds,
                claim_raises_attempt_and_fence_and_sets_the_lease,
                claim_takes_several_shards_in_the_order_asked_for,
                claim_stays_within_its_lane,
                claim_looks_at_nothing_before_the_head,
                claim_takes_nothing_before_its_time,
                claim_of_an_unknown_shard_gives_nothing,
                claim_passes_over_rows_held_by_another_worker,
            }
            race {
                concurrent_claims_never_share_a_job,
                claim_and_hold_never_both_take_a_job,
                all_operations_at_once_surface_no_error_and_lose_no_job,
            }
            renew {
                renew_keeps_a_lease_and_names_lost_ones,
                renew_of_a_lapsed_lease_is_refused,
                renew_counts_from_now,
            }
            finish {
                finish_moves_each_job_where_its_outcome_says,
                finish_of_many_writes_all_but_the_lost,
                finish_twice_is_no_error,
                finishes_of_one_job_in_one_call_are_judged_by_their_leases,
                finish_after_the_lease_lapsed_is_refused,
                finish_by_an_older_lease_is_refused,
                finish_by_another_owner_is_refused,
                finish_keeps_an_error_cut_between_characters,
                finish_without_an_error_keeps_the_last_one,
                attempts_end_with_the_maximum,
            }
            finished {
                delete_removes_rows_that_succeeded_and_no_others,
                history_takes_rows_that_succeeded_and_no_others,
                key_is_free_again_once_its_row_has_left,
            }
            reap {
                reap_counts_a_lapsed_lease_as_a_failed_attempt,
                reap_takes_the_longest_lapsed_first_and_says_when_more_wait,
                reap_leaves_live_leases,
                reap_leaves_jobs_that_moved_after_it_looked,
                reap_ends_the_very_lease_that_it_read,
                late_finisher_is_told_after_a_reap,
                attempts_that_lapse_end_dead_as_crashed_with_the_maximum,
                last_attempt_after_a_crash_is_claimed_alone,
            }
            operate {
                operate_follows_the_state_machine,
                operate_answers_once_per_id_in_the_order_asked_for,
                operate_on_too_many_ids_is_refused,
                operate_keeps_the_reason,
                release_and_requeue_start_anew_at_once,
                fence_grows_over_every_claim,
            }
            counts {
                counts_add_up,
                has_open_sees_waiting_and_running_jobs,
                has_open_never_misses_a_job_that_moves,
            }
            shards {
                a_shard_has_one_holder_and_a_fence_that_grows,
                a_lapse_leaves_jobs_in_doubt_and_a_release_does_not,
                claim_under_a_shards_lease_writes_nothing,
                claim_under_a_shards_lease_tells_when_the_next_job_is_due,
                claim_without_the_shards_lease_gives_nothing,
                finish_under_a_shards_lease_claims_and_finishes_at_once,
                finish_under_a_shards_lease_that_is_lost_changes_nothing,
                finish_under_a_shards_lease_compares_the_rows_fence,
                claim_of_jobs_in_doubt_looks_at_nothing_before_the_head,
                success_under_a_shards_lease_moves_or_deletes_the_row,
                finish_in_under_a_shards_lease_commits_with_the_callers_writes,
                an_operators_hold_or_cancel_is_honoured_at_finish,
                jobs_in_doubt_are_claimed_by_their_rows,
                finishes_of_both_kinds_of_lease_are_written_together,
            }
            nodes {
                members_are_the_nodes_whose_heartbeat_stands,
                a_node_that_left_is_no_member,
                job_types_keep_their_nodes_apart,
                many_nodes_beat_at_once_without_an_error,
                one_node_may_join_several_times_at_once,
                nodes_that_lapsed_long_ago_are_forgotten,
                heartbeat_without_the_table_says_what_to_run,
            }
            doctor {
                doctor_finds_no_fault_in_a_healthy_installed_database,
                doctor_names_the_missing_table_and_makes_none,
            }
            model {
                any_sequence_of_operations_matches_the_reference,
            }
        }
    };
}

/// The tests that look below the backend with SQL of their own.
#[macro_export]
macro_rules! conformance_sql {
    ($database:ty) => {
        $crate::conformance_sql! { tests, $database }
    };
    ($each:ident, $database:ty) => {
        $crate::$each! { $database;
            faults {
                table_with_faults_is_refused_with_each_of_them_named,
                table_of_nodes_with_faults_is_refused,
                further_columns_and_indexes_are_fine,
            }
            ills {
                doctor_tells_every_part_of_the_server,
                doctor_names_each_difference_of_the_table,
                doctor_names_a_claim_that_has_lost_its_index,
                doctor_names_a_surplus_index_as_worth_a_change,
            }
            cancel {
                every_call_dropped_at_each_await_leaves_nothing_open,
            }
            statements {
                statements_that_write_leave_rows_in_any_other_status,
                statements_that_read_leases_pass_over_all_other_rows,
                forget_leaves_a_node_that_came_back,
                a_shard_that_was_taken_meanwhile_is_not_taken,
                the_leases_that_stand_are_those_that_were_asked_for,
                history_leaves_rows_that_succeeded_before_there_was_one,
            }
        }
    };
}

/// The tests of servers that pass over locked rows.
#[macro_export]
macro_rules! conformance_skip_locked {
    ($database:ty) => {
        $crate::tests! { $database;
            skip_locked {
                claim_passes_over_rows_that_another_transaction_has_locked,
            }
        }
    };
}

/// The tests of servers whose claims lock nothing that they pick.
#[macro_export]
macro_rules! conformance_compare_and_set {
    ($database:ty) => {
        $crate::conformance_compare_and_set! { tests, $database }
    };
    ($each:ident, $database:ty) => {
        $crate::$each! { $database;
            compare_and_set {
                claim_leaves_a_job_that_was_claimed_and_given_back_since_it_was_picked,
            }
        }
    };
}

/// The tests that need MySQL's row locks.
#[macro_export]
macro_rules! conformance_mysql {
    ($database:ty) => {
        $crate::tests! { $database;
            settings {
                doctor_names_another_engine_and_row_format,
                doctor_tells_settings_as_the_server_has_them,
                doctor_says_unknown_of_what_its_user_may_not_read,
            }
            locks {
                deadlock_in_the_callers_transaction_surfaces_and_leaves_nothing,
                finish_waits_for_a_lock_and_is_written,
            }
        }
    };
}

/// The same tests as a list, to be run on purpose.
#[doc(hidden)]
#[macro_export]
macro_rules! cases {
    ($database:ty; $($module:ident { $($test:ident),+ $(,)? })+) => {
        ::std::vec![$($($crate::guards::Case {
            module: stringify!($module),
            name: stringify!($test),
            run: || ::std::boxed::Box::pin(
                $crate::run::<$database, _>($crate::conformance::$module::$test),
            ),
        },)+)+]
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! tests {
    ($database:ty; $($module:ident { $($test:ident),+ $(,)? })+) => {$(
        mod $module {$(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                $crate::run::<$database, _>($crate::conformance::$module::$test).await;
            }
        )+}
    )+};
}
