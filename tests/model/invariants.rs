//! The invariants of the model: what must hold in every state, and which states must be reachable.

use stateright::Property;

use crate::rows::{Kind, Policy, Run, State, Status, Text};
use crate::steps::{FaultBudget, Schedule, SystemState};

pub const ONE_EACH: &str = "at most one run is running and one is queued";
pub const ENDS_ONCE: &str = "a run ends once and keeps its final state";
pub const FENCED: &str = "only the holder of the lease writes for a run";
pub const ONE_TEXT: &str = "a run has one text if it succeeded or was canceled with its text kept";
pub const NOTHING_LOST: &str = "a run sees every message that it was planned for";
pub const STOP_IS_FINAL: &str = "a stopped run writes nothing";
pub const STOP_HOLDS: &str = "after a stop nothing is queued until a user acts";
pub const ROUND_HAS_RUN: &str = "an active round has a run, a paused one has none queued";
pub const NO_TURN_LOST: &str = "no round is closed because its run is missing";
pub const BUDGET: &str = "auto mode does not exceed its budget";
pub const EXTENDS_REPLY: &str = "a continue runs and writes only for a reply that was the newest";
pub const TURN_ENDS_ONCE: &str = "the turn of a person ends once";
pub const NO_DEADLOCK: &str = "all runs end, and every message is answered or its run was canceled";

/// The invariants, and the states that must be reachable.
pub fn all(model: &Schedule) -> Vec<Property<Schedule>> {
    let mut all = vec![
        Property::always(ONE_EACH, |_: &Schedule, it: &SystemState| one_each(it)),
        Property::always(ENDS_ONCE, |_: &Schedule, it: &SystemState| {
            !has_run(it, |run| !ends_once(run))
        }),
        Property::always(FENCED, |_: &Schedule, it: &SystemState| {
            !it.rows.wrote_without_lease
        }),
        Property::always(ONE_TEXT, |_: &Schedule, it: &SystemState| one_text(it)),
        Property::always(NOTHING_LOST, |_: &Schedule, it: &SystemState| {
            nothing_lost(it)
        }),
        Property::always(STOP_IS_FINAL, |_: &Schedule, it: &SystemState| {
            stopped_runs_write_nothing(it)
        }),
        Property::always(STOP_HOLDS, |_: &Schedule, it: &SystemState| {
            !it.rows.is_stopped || it.rows.in_status(Status::Queued).is_none()
        }),
        Property::always(ROUND_HAS_RUN, |_: &Schedule, it: &SystemState| {
            round_has_run(it)
        }),
        Property::always(NO_TURN_LOST, |_: &Schedule, it: &SystemState| {
            !it.rows.had_stalled_round
        }),
        Property::always(BUDGET, budget),
        Property::always(EXTENDS_REPLY, |_: &Schedule, it: &SystemState| {
            extends_reply(it)
        }),
        Property::always(TURN_ENDS_ONCE, |_: &Schedule, it: &SystemState| {
            turn_ends_once(it)
        }),
        Property::always(NO_DEADLOCK, |model: &Schedule, it: &SystemState| {
            is_at_rest(model, it) || no_node_is_up(it) || model.can_move(it)
        }),
    ];
    all.extend(examples(model));
    all
}

/// The states that must be reachable within the bounds of the model.
fn examples(model: &Schedule) -> Vec<Property<Schedule>> {
    let FaultBudget {
        posts,
        crashes,
        sleeps,
        closes,
        stops,
        continues,
        turns,
        ..
    } = model.faults;
    let mut all = vec![
        Property::sometimes("all runs end", |model: &Schedule, it: &SystemState| {
            is_at_rest(model, it) && it.remaining.posts == 0
        }),
        Property::sometimes("the turn of a dead node is claimed by another", |_, it| {
            has_run(it, |run| {
                run.attempt == 2 && run.status == Status::Succeeded
            })
        }),
    ];
    let mut expect_if = |possible: bool, name, seen: fn(&Schedule, &SystemState) -> bool| {
        if possible {
            all.push(Property::sometimes(name, seen));
        }
    };
    expect_if(
        sleeps > 0,
        "a node executes a turn that has ended",
        |_, it| late(it),
    );
    expect_if(
        crashes + sleeps > 1,
        "both attempts of a turn are lost",
        |_, it| has_run(it, |run| run.attempt == 2 && run.status == Status::Failed),
    );
    expect_if(
        closes > 0,
        "a turn is released and claimed again",
        |_, it| has_run(it, |run| run.lease == 2 && run.status == Status::Succeeded),
    );
    expect_if(stops > 0, "a stop ends a run", |_, it| {
        has_run(it, |run| run.was_stopped && run.status == Status::Canceled)
    });
    expect_if(stops > 0, "a stop keeps the partial text", |_, it| {
        it.rows.texts.iter().any(|text| match text {
            Text::ByRun(id) => it.rows.run(*id).status == Status::Canceled,
            Text::ByUser => false,
        })
    });
    expect_if(continues > 0, "a continue adds a version", |_, it| {
        !it.rows.versions.is_empty()
    });
    expect_if(
        continues > 0,
        "a post cancels a queued continue",
        |_, it| {
            let is_canceled = |run: &Run| {
                let unclaimed = run.cutoff == 0 && !run.was_stopped;
                run.kind == Kind::Continue && run.status == Status::Canceled && unclaimed
            };
            has_run(it, is_canceled)
        },
    );
    expect_if(turns > 0, "a person takes the turn", |_, it| {
        it.rows.human_turns.iter().any(|it| it.2)
    });
    expect_if(turns > 0, "a turn is skipped at its deadline", |_, it| {
        it.rows.human_turns.iter().any(|it| !it.2)
    });
    let has_people = model.human_slot.is_some();
    expect_if(
        posts > 1 && !has_people,
        "a burst gets one reply",
        |_, it| {
            let planned = &it.rows.planned;
            planned.len() == 2 && planned[0].1 == planned[1].1
        },
    );
    let waits = model.policy == Policy::Queue && posts > 1 && !has_people;
    expect_if(
        waits,
        "a reply is stored after the next message",
        |_, it| answered_late(it),
    );
    expect_if(
        model.auto_budget > 0,
        "auto mode uses its whole budget",
        |model, it| it.rows.n_auto_turns(it.rows.epoch()) == model.auto_budget,
    );
    all
}

fn has_run(state: &SystemState, fits: impl FnMut(&Run) -> bool) -> bool {
    state.rows.runs.iter().any(fits)
}

fn one_each(state: &SystemState) -> bool {
    [Status::Queued, Status::Running].iter().all(|status| {
        let found = state.rows.runs.iter().filter(|it| it.status == *status);
        found.count() <= 1
    })
}

fn ends_once(run: &Run) -> bool {
    run.n_ends == u8::from(run.status.is_final())
}

fn one_text(state: &SystemState) -> bool {
    (0..).zip(&state.rows.runs).all(|(id, run)| {
        let texts = state.rows.texts.iter();
        let versions = state.rows.versions.iter();
        let n_texts = texts.filter(|it| **it == Text::ByRun(id)).count()
            + versions.filter(|it| it.1 == id).count();
        match run.status {
            Status::Succeeded => n_texts == 1,
            Status::Canceled if run.keeps_partial => n_texts <= 1,
            _ => n_texts == 0,
        }
    })
}

/// The message that a continue extends is a reply, and was the newest message at its claim.
fn extends_reply(state: &SystemState) -> bool {
    let rows = &state.rows;
    rows.runs.iter().all(|run| {
        let target = usize::from(run.expected_tail).checked_sub(1);
        let is_reply = |it: usize| matches!(rows.texts[it], Text::ByRun(_));
        run.kind != Kind::Continue
            || target.is_some_and(is_reply) && (run.cutoff == 0 || run.cutoff == run.expected_tail)
    })
}

fn nothing_lost(state: &SystemState) -> bool {
    state.rows.planned.iter().all(|(seq, run)| {
        let run = state.rows.run(*run);
        // A run that ended while queued has seen no message.
        let unclaimed = run.cutoff == 0 && run.status != Status::Running;
        unclaimed || run.cutoff >= *seq
    })
}

fn stopped_runs_write_nothing(state: &SystemState) -> bool {
    let mut texts = state.rows.texts.iter();
    let mut versions = state.rows.versions.iter();
    texts.all(|it| match it {
        Text::ByRun(id) => !state.rows.run(*id).was_stopped,
        Text::ByUser => true,
    }) && versions.all(|(_, id)| !state.rows.run(*id).was_stopped)
}

fn round_has_run(state: &SystemState) -> bool {
    let Some(round) = &state.rows.round else {
        return true;
    };
    let rows = &state.rows;
    let queued = rows.in_status(Status::Queued);
    let running = rows.in_status(Status::Running);
    let is_turn = |run: Option<u8>| run.is_some_and(|it| rows.is_current_turn(it));
    match round.state {
        State::Generating => is_turn(queued) || is_turn(running),
        State::Waiting => !is_turn(queued) && !is_turn(running),
        State::Paused | State::Failed => queued.is_none_or(|it| rows.run(it).round != round.id),
    }
}

fn turn_ends_once(state: &SystemState) -> bool {
    let ended = &state.rows.human_turns;
    let is_first = |(at, turn): (usize, &(u8, u8, bool))| {
        ended[..at]
            .iter()
            .all(|it| (it.0, it.1) != (turn.0, turn.1))
    };
    ended.iter().enumerate().all(is_first)
}

fn budget(model: &Schedule, state: &SystemState) -> bool {
    (0..=state.rows.epoch()).all(|it| state.rows.n_auto_turns(it) <= model.auto_budget)
}

/// No run is queued or running, and each message was seen by a run that ended, or its queued run
/// was canceled by a user. Where people take turns, a message in a round needs no answer.
fn is_at_rest(model: &Schedule, state: &SystemState) -> bool {
    let rows = &state.rows;
    let is_active = rows.runs.iter().any(|it| !it.status.is_final());
    let is_answered = |seq: u8| {
        let is_seen = rows.runs.iter().any(|it| it.cutoff >= seq);
        let planned = rows.planned.iter().filter(|it| it.0 == seq);
        let is_canceled = |run: u8| rows.run(run).status == Status::Canceled;
        is_seen || planned.into_iter().any(|it| is_canceled(it.1))
    };
    let mut user_messages = (1..)
        .zip(&rows.texts)
        .filter(|(_, it)| **it == Text::ByUser);
    let needs_answers = model.human_slot.is_none();
    let is_answered = |seq: u8| !needs_answers || is_answered(seq);
    !is_active && !rows.is_generating() && user_messages.all(|(seq, _)| is_answered(seq))
}

fn no_node_is_up(state: &SystemState) -> bool {
    let mut nodes = state.nodes.iter();
    nodes.all(|it| !it.is_awake() || it.is_closing)
}

/// A node executes a run whose lease it has lost.
fn late(state: &SystemState) -> bool {
    let mut held = state.nodes.iter().flat_map(|it| &it.held);
    held.any(|it| !state.rows.is_held(it.run, it.lease))
}

/// A reply was committed after a message that its run has not seen.
fn answered_late(state: &SystemState) -> bool {
    has_run(state, |run| {
        run.kind == Kind::UserTurn
            && run.status == Status::Succeeded
            && run.cutoff < state.rows.tail()
            && state.rows.texts[usize::from(run.cutoff)] == Text::ByUser
    })
}
