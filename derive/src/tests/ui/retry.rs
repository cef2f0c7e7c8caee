// Without a delay.
#[retry_job(table = "a", retry(jitter = "30s"))]
struct NoDelay {
    field: u8,
}

// Several kinds of delay.
#[retry_job(table = "a", retry(fixed = "1s", linear = "2s", schedule = ["5m"]))]
struct Kinds {
    field: u8,
}

// Unknown and misplaced.
#[retry_job(table = "a", retry(fixed = "1s", max_attempt = 3, lease = "5m", x = 1))]
struct Unknown {
    field: u8,
}

// A factor multiplies, so it needs something that grows.
#[retry_job(table = "a", retry(fixed = "1s", factor = 2))]
struct FactorFixed {
    field: u8,
}
#[retry_job(table = "a", retry(linear = "1s", factor = 2))]
struct FactorLinear {
    field: u8,
}
#[retry_job(table = "a", retry(schedule = ["1s"], factor = 2))]
struct FactorSchedule {
    field: u8,
}
#[retry_job(table = "a", retry(graded(first = "1s", then = "1m"), factor = 2))]
struct FactorGraded {
    field: u8,
}
#[retry_job(table = "a", retry(exponential = "1s", factor = 0))]
struct FactorZero {
    field: u8,
}

// A cap needs delays on both sides.
#[retry_job(table = "a", retry(fixed = "1s", cap = "2s"))]
struct CapFixed {
    field: u8,
}
#[retry_job(table = "a", retry(schedule = ["1m", "2h", "1h30m"], cap = "2h"))]
struct CapSchedule {
    field: u8,
}
#[retry_job(table = "a", retry(exponential = "1m", cap = "1m"))]
struct CapExponential {
    field: u8,
}
#[retry_job(table = "a", retry(graded(first = "1s", then = "1m"), cap = "30s"))]
struct CapGraded {
    field: u8,
}

// A schedule has at least one delay, and each is one.
#[retry_job(table = "a", retry(schedule = []))]
struct ScheduleEmpty {
    field: u8,
}
#[retry_job(table = "a", retry(schedule = "5m"))]
struct ScheduleText {
    field: u8,
}
#[retry_job(table = "a", retry(schedule = ["5m", 30, "2 h", "36601d"]))]
struct ScheduleDelays {
    field: u8,
}

// Every delay of a schedule is used.
#[retry_job(table = "a", retry(schedule = ["5m", "30m", "2h"], max_attempts = 3))]
struct ScheduleLong {
    field: u8,
}

// One attempt is never followed by another.
#[retry_job(
    table = "a",
    lanes(fresh = 1),
    retry(
        linear = "1s",
        factor = 2,
        cap = "1h",
        jitter = "1s",
        grace = "1d",
        manual_after = 1,
        max_attempts = 1
    )
)]
struct Once {
    field: u8,
}

// A person decides before the attempts are used up.
#[retry_job(table = "a", retry(fixed = "1s", max_attempts = 4, manual_after = 4))]
struct ManualLate {
    field: u8,
}
#[retry_job(table = "a", retry(schedule = ["1s", "2s"], manual_after = 3))]
struct ManualSchedule {
    field: u8,
}
#[retry_job(table = "a", retry(fixed = "1s", max_attempts = 65536, manual_after = 0))]
struct Attempts {
    field: u8,
}

// The parts of a graded delay.
#[retry_job(table = "a", retry(graded(first = "1s", factr = 3)))]
struct Graded {
    field: u8,
}
#[retry_job(table = "a", retry(graded = "1s"))]
struct GradedText {
    field: u8,
}
#[retry_job(table = "a", retry(graded()))]
struct GradedEmpty {
    field: u8,
}

// What would never wait can't grow.
#[retry_job(table = "a", retry(exponential = "0s", jitter = "0s", cap = "0s", grace = "0s"))]
struct Zero {
    field: u8,
}

// Lanes have two names.
#[retry_job(table = "a", lanes(fresh = 3, retries = 1, slow = 2))]
struct Lanes {
    field: u8,
}
