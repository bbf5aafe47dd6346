//! The laws of the schedule under any sequence of commands on any roster, with rounds of one slot
//! and of several: what the planner decides can always be carried out, and leaves no law broken.

use crate::ids::MembershipId;
use crate::ids::MessageId;
use crate::ids::RoundId;
use crate::ids::RunId;
use crate::rounds::round;
use crate::rounds::slot;
use crate::runs::command::Command;
use crate::runs::command::End;
use crate::runs::planner::property_acts::Act;
use crate::runs::planner::property_acts::Button;
use crate::runs::planner::property_acts::How;
use crate::runs::planner::property_acts::act;
use crate::runs::planner::property_acts::order;
use crate::runs::planner::property_acts::policy;
use crate::runs::planner::property_laws;
use crate::runs::planner::regenerate_tests::regenerate;
use crate::runs::planner::rules_tests::edit;
use crate::runs::planner::rules_tests::show;
use crate::runs::planner::stage::EVE;
use crate::runs::planner::stage::Stage;
use crate::runs::planner::stage::failure;
use crate::runs::planner::stage::post;
use crate::runs::planner::stage::success;
use crate::runs::planner::stage::written;
use crate::runs::run;
use crate::runs::situation::Round;
use crate::spaces::membership::CopilotMode;
use crate::spaces::space;
use crate::spaces::space::GroupRegenerateMode;
use crate::spaces::space::RepliesPerTurn;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::HashSet;

/// No budget of these tests is greater.
const MOST_TURNS: usize = 8;

/// A stage under watch.
struct Theater {
    stage: Stage,
    /// The runs that were planned for a message, with its `seq`.
    planned: Vec<(RunId, i64)>,
    /// The runs that were queued as forced turns.
    forced: HashSet<RunId>,
    /// The turns that auto mode took since a person spoke, as round and slot.
    turns: HashSet<(Option<RoundId>, Option<i64>)>,
    /// What Eve's copilot was given in all.
    n_steps: i64,
    /// The space is archived, and the schedule was told.
    is_closed: bool,
}

impl Theater {
    fn open(n_characters: usize) -> Self {
        let names = ["Ada", "Bob", "Cid", "Dot"];
        Self {
            stage: Stage::of(&names[..n_characters]),
            planned: Vec::new(),
            forced: HashSet::new(),
            turns: HashSet::new(),
            n_steps: 0,
            is_closed: false,
        }
    }

    fn play(&mut self, act: Act) {
        match self.command(act) {
            Some(command) => self.carry_out(&command),
            None => self.keeps_its_laws(),
        }
    }

    /// The command of an act; `None`: it changed something beside the schedule, or nothing.
    fn command(&mut self, act: Act) -> Option<Command> {
        let s = &mut self.stage.s;
        let running = s.running.clone();
        let held = running.as_ref().map(|it| (it.id, it.lease));
        match act {
            Act::Post(text) => return Some(post(text)),
            Act::Due => {
                let run = s.queued.as_ref()?.id;
                return Some(Command::Due { run });
            }
            Act::End(how) => {
                let (run, lease) = held?;
                let asked = running.is_some_and(|it| it.cancel_requested_at.is_some());
                let end = end(how, asked);
                return Some(Command::Ended {
                    run,
                    lease,
                    end: Box::new(end),
                });
            }
            Act::LateEnd => {
                let (run, lease) = (held?.0, held?.1 - 1);
                let end = success("Late.");
                return Some(Command::Ended {
                    run,
                    lease,
                    end: Box::new(end),
                });
            }
            Act::Die => {
                let ((run, lease), silent_for_ms) = (held?, 30_000);
                return Some(Command::Abandoned {
                    run,
                    lease,
                    silent_for_ms,
                });
            }
            Act::HandBack => {
                let (run, lease) = held?;
                return Some(Command::HandedBack {
                    run,
                    lease,
                    usage: None,
                });
            }
            Act::Adrift => return Some(Command::Adrift),
            Act::Stop(keep_partial) => return Some(Command::Stop { keep_partial }),
            Act::Press(button) => return press(button, &self.stage),
            Act::Force(speaker) => {
                let speaker = speaker.map(MembershipId);
                let by = "Eve".to_owned();
                return Some(Command::ForceTalk { speaker, by });
            }
            Act::Regenerate(message) => return Some(regenerate(message)),
            Act::Select(id, position) => {
                return Some(Command::SwipeSelected {
                    message: MessageId(id),
                    position,
                    expected_version: None,
                });
            }
            Act::WholeTurns(true) => s.space.group_regenerate_mode = GroupRegenerateMode::LastTurn,
            Act::WholeTurns(false) => {
                s.space.group_regenerate_mode = GroupRegenerateMode::SingleMessage;
            }
            Act::Fork(id) => self.stage.fork_point = self.stage.fork(MessageId(id)),
            Act::Show(id, visibility) => return Some(show(id, visibility)),
            Act::Edit(id) => return Some(edit(id)),
            Act::Seat(id, status, participation) => {
                let seats = s.members.iter_mut().filter(|it| it.id.0 == id);
                seats.for_each(|it| (it.status, it.participation) = (status, participation));
            }
            Act::Order(order) => s.space.reply_order = order,
            Act::TellSeat | Act::TellSettings => return Some(Command::ApplyChanges),
            Act::Policy(policy) => s.space.during_generation_user_input_policy = policy,
            Act::Debounce(ms) => s.space.user_turn_debounce_ms = ms,
            Act::WakeAll(true) => s.space.replies_per_turn = RepliesPerTurn::Activated,
            Act::WakeAll(false) => s.space.replies_per_turn = RepliesPerTurn::One,
            Act::EditQueue(slots, is_fresh) => {
                let round = s.round.as_ref().map(|it| it.row.id);
                return Some(Command::EditQueue {
                    round: round.filter(|_| is_fresh).unwrap_or_else(RoundId::new),
                    slots: slots.into_iter().map(MembershipId).collect(),
                    by: "Eve".to_owned(),
                });
            }
            Act::Auto(on) => s.space.auto_mode_enabled = on,
            Act::Copilot(steps) => self.turn_copilot(steps),
            Act::StartCopilot => return Some(Command::CopilotStarted { seat: EVE }),
            Act::AutoTurns(n) => s.space.auto_mode_max_turns = n,
            Act::Provider(there) => self.stage.has_provider = there,
            Act::TokenLimit(limit) => {
                (s.space.token_limit, s.space.tokens_used) = (limit, limit);
            }
            Act::Archive(true) => s.space.status = space::SpaceStatus::Archived,
            Act::Archive(false) => {
                s.space.status = space::SpaceStatus::Active;
                self.is_closed = false;
            }
            Act::Close => {
                self.is_closed = s.space.status == space::SpaceStatus::Archived;
                return Some(Command::Closed(run::RunCancelReason::Archived));
            }
            Act::Pass(ms) => self.stage.now = self.stage.now.plus_ms(ms),
        }
        None
    }

    fn carry_out(&mut self, command: &Command) {
        // The stage panics when a plan cannot be carried out; a refusal changes nothing.
        let before = self.stage.s.clone();
        let outcome = self.stage.carries_out(command);
        if let Ok((plan, _)) = &outcome {
            property_laws::hold(&before, command, plan, &self.stage);
        }
        if outcome.is_ok() && matches!(command, Command::Posted(_)) {
            self.turns.clear();
        }
        if let Ok((plan, _)) = outcome
            && let Some(enqueue) = plan.enqueue
        {
            let at = enqueue.run.run_after;
            assert!(
                at.is_none_or(|at| at >= self.stage.now),
                "planned into the past"
            );
            if enqueue.run.kind == run::RunKind::AutoMode {
                let turn = (enqueue.run.round_id, enqueue.run.slot_position);
                self.turns.insert(turn);
                assert!(self.turns.len() <= MOST_TURNS, "I13: auto mode goes on");
            }
            if enqueue.run.kind == run::RunKind::ForceTalk {
                let run = self.stage.s.queued.as_ref().expect("just queued").id;
                self.forced.insert(run);
            }
            if matches!(command, Command::Posted(_)) {
                let run = self.stage.s.queued.as_ref().expect("just queued").id;
                let seq = self.stage.s.conversation.last_seq;
                self.planned.push((run, seq));
            }
        }
        self.keeps_its_laws();
    }

    fn keeps_its_laws(&self) {
        let s = &self.stage.s;
        if let Some(round) = &s.round {
            rounds_move_on(round, s.queued.as_ref(), s.running.as_ref());
            cursors(round);
        }
        if self.is_closed {
            assert!(
                s.queued.is_none() && s.running.is_none() && s.round.is_none(),
                "something goes on in an archived space"
            );
        }
        self.stage.texts_are_whole();
        self.steps();
        self.no_run_is_lost();
    }

    fn turn_copilot(&mut self, steps: Option<i64>) {
        let here = self.stage.s.conversation.id;
        let seat = self.stage.seat(EVE);
        seat.copilot_mode = match steps {
            Some(_) => CopilotMode::Full,
            None => CopilotMode::None,
        };
        seat.copilot_remaining_steps = steps;
        seat.copilot_conversation_id = Some(here);
        self.n_steps += steps.unwrap_or_default();
    }

    /// A copilot writes no more texts than it was given steps.
    fn steps(&self) {
        let messages = self.stage.messages.iter();
        let written =
            messages.filter(|it| it.space_membership_id == EVE && it.conversation_run_id.is_some());
        let n_written = i64::try_from(written.count()).expect("few texts");
        assert!(n_written <= self.n_steps, "a copilot goes on");
    }

    /// S8, S9: what was planned for a message waits, runs with it in sight, or has ended.
    fn no_run_is_lost(&self) {
        let s = &self.stage.s;
        for (id, seq) in &self.planned {
            let mut all = self.stage.ended.iter().chain(&s.queued).chain(&s.running);
            let run = all.find(|it| it.id == *id);
            let run = run.unwrap_or_else(|| panic!("the answer to message {seq} is lost"));
            assert!(run.cutoff_seq.is_none_or(|cutoff| cutoff >= *seq));
        }
        for id in &self.forced {
            let mut all = self.stage.ended.iter().chain(&s.queued).chain(&s.running);
            assert!(all.any(|it| it.id == *id), "I17: a forced turn is lost");
        }
    }

    /// Lets everything come to its end: nothing new happens, every reply succeeds.
    fn quiesce(&mut self) {
        for _ in 0..100 {
            if self.stage.s.running.is_some() {
                self.play(Act::End(How::Success));
            } else if let Some(queued) = &self.stage.s.queued {
                let at = queued.run_after.unwrap_or(self.stage.now);
                self.stage.now = self.stage.now.max(at);
                self.play(Act::Due);
            } else {
                return;
            }
        }
        panic!("it goes on for ever");
    }
}

fn end(how: How, asked: bool) -> End {
    match how {
        How::Failure => failure(),
        How::KeptIfAsked if asked => End::Canceled {
            partial: Some(written("Hel")),
            usage: None,
            prompt: None,
        },
        How::NothingIfAsked if asked => End::Canceled {
            partial: None,
            usage: None,
            prompt: None,
        },
        _ => success("Hello."),
    }
}

fn press(button: Button, stage: &Stage) -> Option<Command> {
    let cancel = |run: &Option<run::Model>| {
        let run = run.as_ref()?.id;
        Some(Command::Cancel { run })
    };
    match button {
        Button::Pause => Some(Command::Pause),
        Button::Resume => Some(Command::Resume),
        Button::Skip => Some(Command::Skip),
        Button::Retry => Some(Command::Retry),
        Button::CancelRunning => cancel(&stage.s.running),
        Button::CancelQueued => cancel(&stage.s.queued),
    }
}

/// I2, I3: a round that goes on has a run of its current slot, one that rests has none queued.
fn rounds_move_on(round: &Round, queued: Option<&run::Model>, running: Option<&run::Model>) {
    let is_turn = |run: &run::Model| {
        run.round_id == Some(round.row.id) && run.slot_position == Some(round.row.cursor)
    };
    match round.row.state {
        round::RoundState::Generating => assert!(
            queued.is_some_and(is_turn) || running.is_some_and(is_turn),
            "I2: nothing moves the round {round:?}"
        ),
        round::RoundState::Paused | round::RoundState::Failed => assert!(
            queued.is_none_or(|it| it.round_id != Some(round.row.id)),
            "I3: a round that rests has a queued run"
        ),
    }
}

/// I4: slots before the cursor are spoken or skipped, from it on pending.
fn cursors(round: &Round) {
    for it in &round.slots {
        let is_pending = it.status == slot::SlotStatus::Pending;
        assert_eq!(it.position >= round.row.cursor, is_pending, "I4: {round:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn no_sequence_of_commands_breaks_a_law(
        n_characters in select(vec![0, 1, 2, 3, 4, 4]),
        order in order(),
        policy in policy(),
        acts in prop::collection::vec(act(), 1..80),
    ) {
        let mut theater = Theater::open(n_characters);
        theater.play(Act::Order(order));
        theater.play(Act::Policy(policy));

        for act in acts {
            theater.play(act);
        }
        theater.quiesce();

        let state = theater.stage.s.round.map(|it| it.row.state);
        prop_assert!(state != Some(round::RoundState::Generating), "it waits for nothing");
    }
}
