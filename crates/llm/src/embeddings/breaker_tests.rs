//! Tests of the circuit breaker: when it opens, for how long, and what closes it.

use std::time::Duration;

use tokio::time::Instant;

use super::{BreakerState, CircuitBreaker};

const OPEN_FOR: Duration = Duration::from_secs(3);

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// Sends a request that fails.
fn fail(breaker: &CircuitBreaker, is_timeout: bool, now: Instant) {
    breaker.permit(now).unwrap().fail(is_timeout, now);
}

fn is_permitted(breaker: &CircuitBreaker, now: Instant) -> bool {
    breaker.permit(now).is_ok()
}

#[test]
fn three_failures_in_a_row_open_it_for_three_seconds() {
    let (breaker, start) = (CircuitBreaker::new(OPEN_FOR), Instant::now());

    fail(&breaker, false, start);
    fail(&breaker, false, start);
    assert!(is_permitted(&breaker, start));
    fail(&breaker, false, start);

    let until = start + OPEN_FOR;
    assert_eq!(breaker.permit(start).unwrap_err(), until);
    assert_eq!(breaker.state(), BreakerState::Open { until });
    assert!(!is_permitted(&breaker, start + seconds(2.999)));
    assert!(is_permitted(&breaker, until));
}

#[test]
fn a_success_between_failures_resets_the_count() {
    let (breaker, start) = (CircuitBreaker::new(OPEN_FOR), Instant::now());

    fail(&breaker, false, start);
    fail(&breaker, false, start);
    breaker.permit(start).unwrap().succeed();
    fail(&breaker, false, start);
    fail(&breaker, false, start);

    assert!(is_permitted(&breaker, start));
}

#[test]
fn one_timeout_opens_it() {
    let (breaker, start) = (CircuitBreaker::new(OPEN_FOR), Instant::now());

    fail(&breaker, true, start);

    assert!(!is_permitted(&breaker, start));
}

#[test]
fn each_failed_probe_doubles_the_time_up_to_a_minute() {
    let (breaker, mut now) = (CircuitBreaker::new(OPEN_FOR), Instant::now());
    let mut open_for = Vec::new();

    fail(&breaker, true, now);
    for _ in 0..7 {
        let until = breaker.permit(now).unwrap_err();
        open_for.push((until - now).as_secs());
        now = until;
        fail(&breaker, false, now);
    }

    assert_eq!(open_for, [3, 6, 12, 24, 48, 60, 60]);
}

#[test]
fn a_successful_probe_closes_it_and_resets_the_time() {
    let (breaker, start) = (CircuitBreaker::new(OPEN_FOR), Instant::now());
    fail(&breaker, true, start);
    fail(&breaker, true, start + seconds(3.0));
    let now = start + seconds(9.0);

    breaker.permit(now).unwrap().succeed();
    assert_eq!(breaker.state(), BreakerState::Closed);
    fail(&breaker, false, now);
    fail(&breaker, false, now);
    assert!(is_permitted(&breaker, now));
    fail(&breaker, false, now);

    assert_eq!(breaker.permit(now).unwrap_err(), now + OPEN_FOR);
}

#[test]
fn only_one_probe_is_permitted_at_a_time() {
    let (breaker, start) = (CircuitBreaker::new(OPEN_FOR), Instant::now());
    fail(&breaker, true, start);
    let now = start + seconds(60.0);

    let probe = breaker.permit(now).unwrap();
    assert_eq!(breaker.state(), BreakerState::Probing);
    assert!(breaker.permit(now).unwrap_err() > now);
    drop(probe);

    assert!(is_permitted(&breaker, now));
}

#[test]
fn a_dropped_probe_does_not_double_the_time() {
    let (breaker, start) = (CircuitBreaker::new(OPEN_FOR), Instant::now());
    fail(&breaker, true, start);
    let now = start + OPEN_FOR;

    drop(breaker.permit(now).unwrap());
    fail(&breaker, false, now);

    assert_eq!(breaker.permit(now).unwrap_err(), now + seconds(6.0));
}

#[test]
fn a_late_outcome_of_an_earlier_request_changes_nothing() {
    let (breaker, start) = (CircuitBreaker::new(OPEN_FOR), Instant::now());
    let late_failure = breaker.permit(start).unwrap();
    let late_success = breaker.permit(start).unwrap();
    let dropped = breaker.permit(start).unwrap();
    fail(&breaker, true, start);
    let state = breaker.state();

    late_failure.fail(true, start + seconds(1.0));
    late_success.succeed();
    drop(dropped);

    assert_eq!(breaker.state(), state);
}

#[test]
fn a_late_outcome_does_not_replace_that_of_the_probe() {
    let (breaker, start) = (CircuitBreaker::new(OPEN_FOR), Instant::now());
    let late = breaker.permit(start).unwrap();
    fail(&breaker, true, start);
    let probe = breaker.permit(start + OPEN_FOR).unwrap();

    late.succeed();

    assert_eq!(breaker.state(), BreakerState::Probing);
    probe.succeed();
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn it_is_open_for_at_least_half_a_second_and_at_most_a_minute() {
    for (first_open, expected) in [(0.0, 0.5), (0.7, 0.7), (600.0, 60.0)] {
        let breaker = CircuitBreaker::new(seconds(first_open));
        let start = Instant::now();

        fail(&breaker, true, start);

        let until = breaker.permit(start).unwrap_err();
        assert_eq!(until - start, seconds(expected));
    }
}
