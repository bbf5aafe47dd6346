//! The invariants of the model: what must hold in every state, and which states must be reachable.

use stateright::Property;

use crate::steps::{FaultBudget, Schedule, World};
use crate::world::{Kind, Policy, Run, State, Status, Text};

pub const ONE_EACH: &str = "at most one run is running and one is queued";
pub const ENDS_ONCE: &str = "a run ends once and keeps its final state";
pub const FENCED: &str = "only the holder of the lease writes for a run";
pub const ONE_TEXT: &str = "a run has one text if it succeeded or was canceled with its text kept";
pub const NOTHING_LOST: &str = "a run sees every message that it was planned for";
pub const SILENT: &str = "a stopped run writes nothing";
pub const STOP_HOLDS: &str = "after a stop nothing is queued until a user acts";
pub const ROUNDS_MOVE: &str = "an active round has a run, a paused one has none queued";
pub const NO_TURN_LOST: &str = "no round is closed because its run is missing";
pub const BUDGET: &str = "auto mode does not exceed its budget";
pub const NEVER_WEDGES: &str =
    "all runs end, and every message is answered or its run was canceled";

/// The invariants, and the states that must be reachable.
pub fn all(model: &Schedule) -> Vec<Property<Schedule>> {
    let mut all = vec![
        Property::always(ONE_EACH, |_: &Schedule, it: &World| one_each(it)),
        Property::always(ENDS_ONCE, |_: &Schedule, it: &World| {
            !has_run(it, |run| !ends_once(run))
        }),
        Property::always(FENCED, |_: &Schedule, it: &World| !it.rows.broke_the_fence),
        Property::always(ONE_TEXT, |_: &Schedule, it: &World| one_text(it)),
        Property::always(NOTHING_LOST, |_: &Schedule, it: &World| nothing_lost(it)),
        Property::always(SILENT, |_: &Schedule, it: &World| silent(it)),
        Property::always(STOP_HOLDS, |_: &Schedule, it: &World| {
            !it.rows.is_stopped || it.rows.in_status(Status::Queued).is_none()
        }),
        Property::always(ROUNDS_MOVE, |_: &Schedule, it: &World| rounds_move(it)),
        Property::always(NO_TURN_LOST, |_: &Schedule, it: &World| !it.rows.was_adrift),
        Property::always(BUDGET, budget),
        Property::always(NEVER_WEDGES, |model: &Schedule, it: &World| {
            is_at_rest(it) || no_node_is_up(it) || model.can_move(it)
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
        ..
    } = model.trouble;
    let mut all = vec![
        Property::sometimes("all runs end", |_: &Schedule, it: &World| {
            is_at_rest(it) && it.left.posts == 0
        }),
        Property::sometimes("the turn of a dead node is claimed by another", |_, it| {
            has_run(it, |run| {
                run.attempt == 2 && run.status == Status::Succeeded
            })
        }),
    ];
    let mut see_if = |possible: bool, name, seen: fn(&Schedule, &World) -> bool| {
        if possible {
            all.push(Property::sometimes(name, seen));
        }
    };
    see_if(
        sleeps > 0,
        "a node executes a turn that has ended",
        |_, it| late(it),
    );
    see_if(crashes + sleeps > 1, "a turn is abandoned", |_, it| {
        has_run(it, |run| run.attempt == 2 && run.status == Status::Failed)
    });
    see_if(
        closes > 0,
        "a turn is released and claimed again",
        |_, it| has_run(it, |run| run.lease == 2 && run.status == Status::Succeeded),
    );
    see_if(stops > 0, "a stop ends a run", |_, it| {
        has_run(it, |run| run.was_stopped && run.status == Status::Canceled)
    });
    see_if(stops > 0, "a stop keeps the partial text", |_, it| {
        it.rows.texts.iter().any(|text| match text {
            Text::OfRun(id) => it.rows.run(*id).status == Status::Canceled,
            Text::OfAPerson => false,
        })
    });
    see_if(posts > 1, "a burst gets one reply", |_, it| {
        let planned = &it.rows.planned;
        planned.len() == 2 && planned[0].1 == planned[1].1
    });
    let waits = model.policy == Policy::Queue && posts > 1;
    see_if(
        waits,
        "a reply is stored after the next message",
        |_, it| answered_late(it),
    );
    see_if(
        model.auto_budget > 0,
        "auto mode uses its whole budget",
        |model, it| it.rows.n_auto_turns(it.rows.epoch()) == model.auto_budget,
    );
    all
}

fn has_run(world: &World, is_so: impl FnMut(&Run) -> bool) -> bool {
    world.rows.runs.iter().any(is_so)
}

fn one_each(world: &World) -> bool {
    [Status::Queued, Status::Running].iter().all(|status| {
        let those = world.rows.runs.iter().filter(|it| it.status == *status);
        those.count() <= 1
    })
}

fn ends_once(run: &Run) -> bool {
    run.n_ends == u8::from(run.status.is_final())
}

fn one_text(world: &World) -> bool {
    (0..).zip(&world.rows.runs).all(|(id, run)| {
        let texts = world.rows.texts.iter();
        let n_texts = texts.filter(|it| **it == Text::OfRun(id)).count();
        match run.status {
            Status::Succeeded => n_texts == 1,
            Status::Canceled if run.was_asked => n_texts <= 1,
            _ => n_texts == 0,
        }
    })
}

fn nothing_lost(world: &World) -> bool {
    world.rows.planned.iter().all(|(seq, run)| {
        let run = world.rows.run(*run);
        // A run that ended while queued has seen no message.
        let unclaimed = run.cutoff == 0 && run.status != Status::Running;
        unclaimed || run.cutoff >= *seq
    })
}

fn silent(world: &World) -> bool {
    let mut texts = world.rows.texts.iter();
    texts.all(|it| match it {
        Text::OfRun(id) => !world.rows.run(*id).was_stopped,
        Text::OfAPerson => true,
    })
}

fn rounds_move(world: &World) -> bool {
    let Some(round) = &world.rows.round else {
        return true;
    };
    let rows = &world.rows;
    let queued = rows.in_status(Status::Queued);
    let running = rows.in_status(Status::Running);
    let is_turn = |run: Option<u8>| run.is_some_and(|it| rows.is_current_turn(it));
    match round.state {
        State::Generating => is_turn(queued) || is_turn(running),
        State::Paused | State::Failed => queued.is_none_or(|it| rows.run(it).round != round.id),
    }
}

fn budget(model: &Schedule, world: &World) -> bool {
    (0..=world.rows.epoch()).all(|it| world.rows.n_auto_turns(it) <= model.auto_budget)
}

/// No run is queued or running, and each message was seen by a run that ended, or its queued run
/// was canceled by a user.
fn is_at_rest(world: &World) -> bool {
    let rows = &world.rows;
    let is_active = rows.runs.iter().any(|it| !it.status.is_final());
    let is_answered = |seq: u8| {
        let is_seen = rows.runs.iter().any(|it| it.cutoff >= seq);
        let planned = rows.planned.iter().filter(|it| it.0 == seq);
        let is_withdrawn = |run: u8| rows.run(run).status == Status::Canceled;
        is_seen || planned.into_iter().any(|it| is_withdrawn(it.1))
    };
    let mut people = (1..)
        .zip(&rows.texts)
        .filter(|(_, it)| **it == Text::OfAPerson);
    !is_active && !rows.is_going_on() && people.all(|(seq, _)| is_answered(seq))
}

fn no_node_is_up(world: &World) -> bool {
    let mut nodes = world.nodes.iter();
    nodes.all(|it| !it.is_awake() || it.is_closing)
}

/// A node executes a run whose lease it has lost.
fn late(world: &World) -> bool {
    let mut held = world.nodes.iter().flat_map(|it| &it.held);
    held.any(|it| !world.rows.is_held(it.run, it.lease))
}

/// A reply was committed after a message that its run has not seen.
fn answered_late(world: &World) -> bool {
    has_run(world, |run| {
        run.kind == Kind::UserTurn
            && run.status == Status::Succeeded
            && run.cutoff < world.rows.tail()
            && world.rows.texts[usize::from(run.cutoff)] == Text::OfAPerson
    })
}
