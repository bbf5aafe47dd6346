//! Model checking of the scheduling protocol: planner, claim, executor, heartbeat, recovery, stop
//! and auto mode on several nodes that crash, sleep and wake, in every interleaving.
//!
//! The correct model keeps every invariant; each flawed one must violate the one that its test
//! names. The model covers the *protocol*: which statements share a transaction, and their
//! conditions.
//! `tests/it/queue_contract.rs` and `tests/it/races.rs` test the statements themselves.
//!
//! The steps of the model in the sources:
//!
//! | step | in the sources |
//! | --- | --- |
//! | `Post` | `planner::post_message`, in one `scheduler::step` with the append |
//! | `Stop`, `StopKeeping`, `Resume` | `controls::stop`, `controls::resume` and `controls::retry` |
//! | `Continue` | `continue_message::plan` |
//! | `TakeTurn` | `human_turns::keep_round`, in the step of a post |
//! | `ReadDeadline`, `TimeOut` | `round::list_deadlines`, then `human_turns::time_out` |
//! | `ReadQueued`, `Claim`, `ClaimUnconfirmed` | `due_runs::list_next_due`, then `completion::claim`, `queue::claim_all` |
//! | `Commit`, `CommitUnconfirmed`, `Fail` | `run_end::commit_end`: `completion::run_ended`, `queue::finish` |
//! | `Release`, `ReleaseUnconfirmed` | `completion::run_released`, `queue::release` |
//! | `BecomeStale`, `Heartbeat` | time without, and with, `queue::heartbeat` |
//! | `ReadStale`, `ExpireLease` | `queue::list_expired`, then `completion::lease_expired`, `queue::expire` |
//! | `CloseStalledRound` | `recovery::list_stalled_rounds`, `completion::round_stalled` |
//! | `Crash`, `Sleep`, `Wake`, `Close` | `kill -9`, `SIGSTOP`, `SIGCONT`, `SIGTERM` |

// Each test prints how many states it explored.
#![allow(clippy::print_stdout)]

mod invariants;
mod nodes;
mod possible_steps;
mod rows;
mod steps;
mod transactions;

use rows::Policy;
use stateright::{Checker, HasDiscoveries, Model};
use steps::{FaultBudget, Flaw, Schedule};

/// One speaker for a message, then auto mode with a budget of one.
fn one_speaker(policy: Policy) -> Schedule {
    Schedule {
        n_nodes: 2,
        n_slots: 1,
        human_slot: None,
        auto_budget: 1,
        policy,
        flaw: Flaw::None,
        faults: FaultBudget {
            posts: 2,
            crashes: 1,
            sleeps: 1,
            closes: 1,
            stops: 1,
            resumes: 1,
            continues: 0,
            turns: 0,
            failures: 0,
            unconfirmed: 0,
        },
    }
}

/// Rounds of two speakers, then auto mode, whose budget ends inside its second round.
fn two_speakers(policy: Policy) -> Schedule {
    let mut model = one_speaker(policy);
    (model.n_slots, model.auto_budget) = (2, 3);
    (model.faults.posts, model.faults.closes) = (1, 0);
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
fn is_caught(flaw: Flaw, invariant: &'static str, model: Schedule) {
    let flawed = Schedule { flaw, ..model };
    let until = HasDiscoveries::AnyOf([invariant].into());
    let checked = flawed.checker().finish_when(until).spawn_bfs().join();
    let n = checked.unique_state_count();
    let Some(path) = checked.discovery(invariant) else {
        panic!("{flaw:?} does not violate “{invariant}” in {n} states");
    };
    let steps = path.into_actions();
    println!("{flaw:?} violates “{invariant}” after {n} states: {steps:?}");
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

/// One reply, then a continue of it, against a second message.
fn continued(policy: Policy) -> Schedule {
    let mut model = one_speaker(policy);
    (model.auto_budget, model.faults.continues) = (0, 1);
    (model.faults.closes, model.faults.resumes) = (0, 0);
    model
}

#[test]
fn a_continue_keeps_every_invariant_when_a_post_waits_for_it() {
    holds(continued(Policy::Queue));
}

#[test]
fn a_continue_keeps_every_invariant_when_a_post_cancels_it() {
    holds(continued(Policy::Restart));
}

/// Rounds of a person and a character, in this order or the other one, against a second message.
fn with_person(human_slot: u8, policy: Policy) -> Schedule {
    let mut model = two_speakers(policy);
    (model.human_slot, model.auto_budget) = (Some(human_slot), 0);
    (model.faults.posts, model.faults.turns) = (2, 1);
    model
}

#[test]
fn the_turn_of_a_person_keeps_every_invariant() {
    holds(with_person(0, Policy::Queue));
    holds(with_person(1, Policy::Queue));
    holds(with_person(1, Policy::Restart));
}

#[test]
fn a_deadline_that_is_not_compared_again_is_detected() {
    is_caught(
        Flaw::TimeOutUnchecked,
        invariants::TURN_ENDS_ONCE,
        with_person(0, Policy::Queue),
    );
}

#[test]
fn three_nodes_keep_every_invariant() {
    let mut model = one_speaker(Policy::Queue);
    model.n_nodes = 3;
    model.faults.stops = 0;
    model.faults.resumes = 0;
    holds(model);
}

#[test]
fn commits_whose_response_is_lost_keep_every_invariant() {
    let mut model = one_speaker(Policy::Queue);
    model.faults.unconfirmed = 1;
    model.faults.failures = 1;
    model.faults.stops = 0;
    model.faults.sleeps = 0;
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
    model.faults.unconfirmed = 1;
    is_caught(Flaw::FinishByState, invariants::FENCED, model);
}

#[test]
fn a_lease_compared_in_an_earlier_transaction_is_detected() {
    is_caught(
        Flaw::LeaseReadBefore,
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
    model.faults.unconfirmed = 1;
    is_caught(Flaw::HeartbeatByNode, invariants::NO_DEADLOCK, model);
}

#[test]
fn a_reaper_that_requeues_the_same_row_is_detected() {
    is_caught(
        Flaw::RequeueSameRow,
        invariants::NO_DEADLOCK,
        one_speaker(Policy::Queue),
    );
}

#[test]
fn a_reaper_that_does_not_compare_the_lease_is_detected() {
    is_caught(
        Flaw::ExpireById,
        invariants::ENDS_ONCE,
        one_speaker(Policy::Queue),
    );
}

#[test]
fn a_follow_up_planned_in_another_transaction_is_detected() {
    is_caught(
        Flaw::FollowUpInNextTransaction,
        invariants::ROUND_HAS_RUN,
        two_speakers(Policy::Queue),
    );
    is_caught(
        Flaw::FollowUpInNextTransaction,
        invariants::NO_TURN_LOST,
        two_speakers(Policy::Queue),
    );
}

#[test]
fn a_plan_in_another_transaction_than_its_post_is_detected() {
    is_caught(
        Flaw::PlanInNextTransaction,
        invariants::NO_DEADLOCK,
        one_speaker(Policy::Queue),
    );
}

#[test]
fn a_stop_that_only_flags_the_run_is_detected() {
    is_caught(
        Flaw::StopOnlyFlags,
        invariants::STOP_IS_FINAL,
        one_speaker(Policy::Queue),
    );
}

#[test]
fn a_follow_up_that_ignores_a_stop_is_detected() {
    is_caught(
        Flaw::FollowUpIgnoresStop,
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
