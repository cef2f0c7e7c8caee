//! The whole suite again, on servers that are set up in other ways.
//!
//! A test binary that holds a suite runs itself as a child process, with the
//! URL of a server of its own that has these settings.

use std::{
    env,
    process::{Command, Stdio},
    time::Instant,
};

use chrono::{NaiveDate, NaiveTime, Weekday};
use sqlx::AssertSqlSafe;

use crate::{
    faults::{
        Instance,
        report::{is_nightly, say},
    },
    inspect::ServerUnderTest,
};

/// Something that a site may have set, and no user of this library should feel.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    name: &'static str,
    args: &'static [&'static str],
    in_new_york: bool,
}

const fn setting(name: &'static str, args: &'static [&'static str]) -> Setting {
    Setting {
        name,
        args,
        in_new_york: false,
    }
}

/// Each on its own, and which of two servers shares it: all of one group go
/// together on one server.
const SETTINGS: [(u8, Setting); 15] = [
    (2, setting("sql_mode ''", &["--sql-mode="])),
    (1, setting("sql_mode ANSI", &["--sql-mode=ANSI"])),
    (
        1,
        setting("sql_mode ANSI_QUOTES", &["--sql-mode=ANSI_QUOTES"]),
    ),
    (
        1,
        setting(
            "sql_mode NO_BACKSLASH_ESCAPES",
            &["--sql-mode=NO_BACKSLASH_ESCAPES"],
        ),
    ),
    (
        1,
        setting("sql_mode TRADITIONAL", &["--sql-mode=TRADITIONAL"]),
    ),
    (
        1,
        setting(
            "sql_mode PAD_CHAR_TO_FULL_LENGTH",
            &["--sql-mode=PAD_CHAR_TO_FULL_LENGTH"],
        ),
    ),
    (
        1,
        setting(
            "sql_mode NO_UNSIGNED_SUBTRACTION",
            &["--sql-mode=NO_UNSIGNED_SUBTRACTION"],
        ),
    ),
    (
        1,
        Setting {
            name: "time zone with DST",
            args: &[],
            in_new_york: true,
        },
    ),
    (1, setting("wait_timeout 1 s", &["--wait-timeout=1"])),
    (
        2,
        setting(
            "max_prepared_stmt_count 50",
            &["--max-prepared-stmt-count=50"],
        ),
    ),
    (
        2,
        setting("max_allowed_packet 64 KiB", &["--max-allowed-packet=65536"]),
    ),
    (
        1,
        setting(
            "innodb_rollback_on_timeout on",
            &["--innodb-rollback-on-timeout=ON"],
        ),
    ),
    (
        2,
        setting(
            "innodb_rollback_on_timeout off",
            &["--innodb-rollback-on-timeout=OFF"],
        ),
    ),
    (
        1,
        setting(
            "isolation REPEATABLE READ",
            &["--transaction-isolation=REPEATABLE-READ"],
        ),
    ),
    (
        2,
        setting(
            "isolation SERIALIZABLE",
            &["--transaction-isolation=SERIALIZABLE"],
        ),
    ),
];

/// What makes a run of the suite quick. None of it changes what a statement
/// means, and this server is never killed before the suite has ended.
const QUICK: [&str; 3] = [
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-flush-method=nosync",
    "--skip-innodb-doublewrite",
];

/// Tests at once, since they wait most of the time, and cases of the one that
/// takes longest.
///
/// With `max_prepared_stmt_count` used up each statement is prepared and closed
/// again, and the driver leaves TCP_NODELAY off: what follows a close waits for
/// a delayed ACK of 40 ms.
const WORK: [(&str, &str); 2] = [("RUST_TEST_THREADS", "8"), ("RETRYJOB_MODEL_CASES", "4")];

/// Runs the suite of this binary on a server with each of the settings: in
/// groups, or each alone at night.
///
/// # Panics
///
/// When a test of the suite fails, with what it said.
pub async fn suite_passes_under_settings_of(kind: ServerUnderTest) {
    if is_nightly() {
        for (_, setting) in SETTINGS {
            run_suite(kind, &[setting]).await;
        }
        return;
    }
    for group in [1, 2] {
        let of_group = SETTINGS.iter().filter(|(of, _)| *of == group);
        let together: Vec<_> = of_group.map(|(_, setting)| *setting).collect();
        run_suite(kind, &together).await;
    }
}

async fn run_suite(kind: ServerUnderTest, settings: &[Setting]) {
    let args = arguments(settings);
    let args: Vec<_> = args.iter().map(String::as_str).chain(QUICK).collect();
    let server = Instance::start(kind, &args).await;
    if settings.iter().any(|setting| setting.in_new_york) {
        live_in_new_york(&server).await;
    }
    let began = Instant::now();
    let suite = Command::new(env::current_exe().unwrap())
        // The doctor is there to find fault with settings.
        .args(
            ["under_settings::", "doctor::", "ills::", "settings::"]
                .map(skip)
                .concat(),
        )
        .env(kind.url_variable(), server.url())
        .envs(WORK.into_iter().take(if is_nightly() { 1 } else { 2 }))
        .stderr(Stdio::piped())
        .output();
    let suite = suite.unwrap();
    let said = String::from_utf8_lossy(&suite.stdout);
    let result = said
        .lines()
        .find_map(|line| line.strip_prefix("test result: "));
    let counts = result
        .unwrap_or("no result")
        .split(';')
        .take(2)
        .collect::<Vec<_>>()
        .join(",");
    let seconds = began.elapsed().as_secs();
    for setting in settings {
        say(format!(
            "{kind:?}, {}: suite {counts} ({seconds} s)",
            setting.name
        ));
    }
    assert!(
        suite.status.success(),
        "{kind:?} with {args:?}: {said}\n{}\n{}",
        String::from_utf8_lossy(&suite.stderr),
        server.log()
    );
}

fn skip(tests: &str) -> [&str; 2] {
    ["--skip", tests]
}

/// All arguments; modes of several settings become one list.
fn arguments(settings: &[Setting]) -> Vec<String> {
    let all = settings.iter().flat_map(|setting| setting.args);
    let (modes, mut args): (Vec<_>, Vec<_>) = all
        .map(|&arg| arg.to_owned())
        .partition(|arg| arg.starts_with("--sql-mode="));
    if !modes.is_empty() {
        let modes: Vec<_> = modes
            .iter()
            .filter_map(|arg| arg.split('=').nth(1))
            .collect();
        args.push(format!("--sql-mode={}", modes.join(",")));
    }
    args
}

/// Loads the one zone, as `mysql_tzinfo_to_sql` would, and makes it that of
/// every new session. Its clocks go forward and back by the rule of 2007; the
/// servers count seconds to the year 2037.
async fn live_in_new_york(server: &Instance) {
    let mut connection = server.connection().await;
    for sql in new_york() {
        let sql = AssertSqlSafe(sql);
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    }
}

fn new_york() -> Vec<String> {
    let mut transitions = Vec::new();
    for year in 2007..2038 {
        // The second Sunday in March and the first in November, at 2 o'clock.
        for (month, week, hour, to) in [(3, 2, 7, 1), (11, 1, 6, 0)] {
            let day = NaiveDate::from_weekday_of_month_opt(year, month, Weekday::Sun, week);
            let time = NaiveTime::from_hms_opt(hour, 0, 0);
            let at = day.unwrap().and_time(time.unwrap()).and_utc().timestamp();
            transitions.push(format!("(1, {at}, {to})"));
        }
    }
    [
        "INSERT INTO mysql.time_zone VALUES (1, 'N')",
        "INSERT INTO mysql.time_zone_name VALUES ('America/New_York', 1)",
        "INSERT INTO mysql.time_zone_transition_type VALUES (1, 0, -18000, 0, 'EST'), (1, 1, -14400, 1, 'EDT')",
        &format!("INSERT INTO mysql.time_zone_transition VALUES {}", transitions.join(", ")),
        "SET GLOBAL time_zone = 'America/New_York'",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// The test that runs the suite of its binary under other settings. The name of
/// its module keeps a suite from running it again.
#[macro_export]
macro_rules! suite_under_settings {
    ($server:ident) => {
        mod under_settings {
            #[tokio::test]
            async fn suite_passes_under_settings_that_sites_have() {
                let server = $crate::inspect::ServerUnderTest::$server;
                $crate::settings::suite_passes_under_settings_of(server).await;
            }
        }
    };
}
