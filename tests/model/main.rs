//! Model checking of the scheduling protocol: planner, claim, executor, heartbeat, recovery, stop
//! and auto mode on several nodes that crash, sleep and wake, in every interleaving.
//!
//! The correct model keeps every invariant; each flawed one must violate a named invariant. The
//! model covers the *protocol*: which statements share a transaction, and their conditions.
//! `tests/it/queue_contract.rs` and `tests/it/races.rs` test the statements themselves.
//!
//! The steps of the model in the sources:
//!
//! | step | in the sources |
//! | --- | --- |
//! | `Post` | `planner::posted`, in one `scheduler::step` with the append |
//! | `Stop`, `StopKeeping`, `Resume` | `control::stop`, `control::resume` and `control::retry` |
//! | `Look`, `Claim`, `ClaimUnconfirmed` | `due::soonest`, then `endings::due`, `queue::claim` |
//! | `Commit`, `CommitUnconfirmed`, `Fail` | `executor::commit`: `endings::ended`, `queue::finish` |
//! | `HandBack`, `HandBackUnconfirmed` | `endings::handed_back`, `queue::hand_back` |
//! | `FallSilent`, `Beat` | time without, and with, `lease::beat` and `queue::beat` |
//! | `Suspect`, `Reap` | `queue::expired`, then `endings::abandoned`, `queue::expire` |
//! | `Adrift` | `reaper::adrift`, `endings::adrift` |
//! | `Crash`, `Sleep`, `Wake`, `Close` | `kill -9`, `SIGSTOP`, `SIGCONT`, `SIGTERM` |

// Each test prints how many states it explored.
#![allow(clippy::print_stdout)]

mod invariants;
mod nodes;
mod possible_steps;
mod steps;
mod transactions;
mod world;

use stateright::{Checker, HasDiscoveries, Model};
use steps::{FaultBudget, Flaw, Schedule};
use world::Policy;

/// One speaker for a message, then auto mode with a budget of one.
fn one_speaker(policy: Policy) -> Schedule {
    Schedule {
        n_nodes: 2,
        n_slots: 1,
        auto_budget: 1,
        policy,
        flaw: Flaw::None,
        trouble: FaultBudget {
            posts: 2,
            crashes: 1,
            sleeps: 1,
            closes: 1,
            stops: 1,
            resumes: 1,
            failures: 0,
            unconfirmed: 0,
        },
    }
}

/// Rounds of two speakers, then auto mode, whose budget ends inside its second round.
fn two_speakers(policy: Policy) -> Schedule {
    let mut model = one_speaker(policy);
    (model.n_slots, model.auto_budget) = (2, 3);
    (model.trouble.posts, model.trouble.closes) = (1, 0);
    model
}

/// Tries every interleaving; panics with a path if an invariant is violated, or if a state that
/// must be reachable is not.
fn holds(model: Schedule) {
    let settings = format!("{model:?}");
    let checked = model.checker().threads(2).spawn_bfs().join();
    checked.assert_properties();
    let (n, depth) = (checked.unique_state_count(), checked.max_depth());
    println!("{n} states, at most {depth} steps from the start: {settings}");
}

/// Explores until the flaw violates its invariant; panics if it never does.
fn is_caught(flaw: Flaw, law: &'static str, model: Schedule) {
    let flawed = Schedule { flaw, ..model };
    let until = HasDiscoveries::AnyOf([law].into());
    let checked = flawed.checker().finish_when(until).spawn_bfs().join();
    let n = checked.unique_state_count();
    let Some(path) = checked.discovery(law) else {
        panic!("{flaw:?} does not violate “{law}” in {n} states");
    };
    let steps = path.into_actions();
    println!("{flaw:?} violates “{law}” after {n} states: {steps:?}");
}

#[test]
fn one_speaker_keeps_every_invariant_when_a_post_waits_for_the_running_reply() {
    holds(one_speaker(Policy::Queue));
}

#[test]
fn one_speaker_keeps_every_invariant_when_a_post_restarts_the_reply() {
    holds(one_speaker(Policy::Restart));
}

#[test]
fn two_speakers_keep_every_invariant() {
    holds(two_speakers(Policy::Queue));
}

#[test]
fn three_nodes_keep_every_invariant() {
    let mut model = one_speaker(Policy::Queue);
    model.n_nodes = 3;
    model.trouble.stops = 0;
    model.trouble.resumes = 0;
    holds(model);
}

#[test]
fn commits_whose_response_is_lost_keep_every_invariant() {
    let mut model = one_speaker(Policy::Queue);
    model.trouble.unconfirmed = 1;
    model.trouble.failures = 1;
    model.trouble.stops = 0;
    model.trouble.sleeps = 0;
    holds(model);
}

#[test]
fn an_end_that_compares_only_the_id_is_detected() {
    is_caught(
        Flaw::FinishById,
        invariants::FENCED,
        one_speaker(Policy::Queue),
    );
}

#[test]
fn an_end_that_does_not_compare_the_lease_is_detected() {
    let mut model = one_speaker(Policy::Queue);
    model.trouble.unconfirmed = 1;
    is_caught(Flaw::FinishByState, invariants::FENCED, model);
}

#[test]
fn a_lease_compared_in_an_earlier_transaction_is_detected() {
    is_caught(
        Flaw::LeaseSeenBefore,
        invariants::FENCED,
        one_speaker(Policy::Queue),
    );
}

#[test]
fn a_cutoff_read_before_the_claim_is_detected() {
    is_caught(
        Flaw::CutoffFirst,
        invariants::NOTHING_LOST,
        one_speaker(Policy::Queue),
    );
}

#[test]
fn a_claim_that_compares_only_the_id_is_detected() {
    is_caught(
        Flaw::ClaimById,
        invariants::ENDS_ONCE,
        one_speaker(Policy::Queue),
    );
}

#[test]
fn a_heartbeat_for_every_run_of_the_node_is_detected() {
    let mut model = one_speaker(Policy::Queue);
    model.trouble.unconfirmed = 1;
    is_caught(Flaw::BeatByName, invariants::NEVER_WEDGES, model);
}

#[test]
fn a_reaper_that_requeues_the_same_row_is_detected() {
    is_caught(
        Flaw::NaiveRequeue,
        invariants::NEVER_WEDGES,
        one_speaker(Policy::Queue),
    );
}

#[test]
fn a_reaper_that_does_not_compare_the_lease_is_detected() {
    is_caught(
        Flaw::ReapById,
        invariants::ENDS_ONCE,
        one_speaker(Policy::Queue),
    );
}

#[test]
fn a_follow_up_planned_in_another_transaction_is_detected() {
    is_caught(
        Flaw::FollowUpApart,
        invariants::ROUNDS_MOVE,
        two_speakers(Policy::Queue),
    );
    is_caught(
        Flaw::FollowUpApart,
        invariants::NO_TURN_LOST,
        two_speakers(Policy::Queue),
    );
}

#[test]
fn a_plan_in_another_transaction_than_its_post_is_detected() {
    is_caught(
        Flaw::PlanApart,
        invariants::NEVER_WEDGES,
        one_speaker(Policy::Queue),
    );
}

#[test]
fn a_stop_that_only_flags_the_run_is_detected() {
    is_caught(
        Flaw::StopOnlyAsks,
        invariants::SILENT,
        one_speaker(Policy::Queue),
    );
}

#[test]
fn a_follow_up_that_ignores_a_stop_is_detected() {
    is_caught(
        Flaw::DeafToStop,
        invariants::STOP_HOLDS,
        one_speaker(Policy::Queue),
    );
}

#[test]
fn an_auto_mode_without_a_budget_is_detected() {
    is_caught(
        Flaw::NoBudget,
        invariants::BUDGET,
        one_speaker(Policy::Queue),
    );
}
