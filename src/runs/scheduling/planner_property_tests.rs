//! Property tests: for any sequence of commands on any roster, with rounds of one slot or several,
//! each plan can be applied, and all invariants hold.

use std::collections::HashSet;

use base::ids::{MembershipId, MessageId, RoundId, RunId};
use proptest::prelude::*;
use proptest::sample::select;

use crate::conversations::audience::viewer::Viewer;
use crate::rounds::round;
use crate::runs::scheduling::command::{Command, ForcedTurn};
use crate::runs::scheduling::planner::continue_tests::continue_command;
use crate::runs::scheduling::planner::fixture::{EVE, PlannerFixture, post, post_by, success};
use crate::runs::scheduling::planner::human_turn_tests::{FAY, skip_by_fay};
use crate::runs::scheduling::planner::in_place_tests::regenerate_in_place;
use crate::runs::scheduling::planner::property_actions::{
    ChoiceKind, ControlAction, EndKind, TestAction, action_strategy, input_policy_strategy,
    reply_order_strategy,
};
use crate::runs::scheduling::planner::regenerate_tests::{regenerate, select as select_swipe};
use crate::runs::scheduling::planner::rules_tests::{edit, mark, show};
use crate::runs::scheduling::planner::{fixture_director, property_actions, property_invariants};
use crate::runs::store::run;
use crate::spaces::membership::{CopilotMode, MembershipStatus, Participation};
use crate::spaces::space;
use crate::spaces::space::{GroupRegenerateMode, RepliesPerTurn};

/// The maximum of every budget in these tests.
const MAX_TURNS: usize = 8;

/// A fixture with the history that the invariants need.
struct PropertyTest {
    fixture: PlannerFixture,
    /// The runs that were planned for a message, with its `seq`.
    planned: Vec<(RunId, i64)>,
    /// The runs that were queued as forced turns.
    forced: HashSet<RunId>,
    /// The turns of auto mode since the last user message, as round and slot.
    turns: HashSet<(Option<RoundId>, Option<i64>)>,
    /// All steps that Eve's copilot was given.
    n_steps: i64,
    /// Whether the space is archived and the schedule was changed accordingly.
    is_closed: bool,
}

impl PropertyTest {
    fn new(n_characters: usize) -> Self {
        let names = ["Ada", "Bob", "Cid", "Dot"];
        let mut fixture = PlannerFixture::with_characters(&names[..n_characters]);
        fixture.add_person(FAY, "Fay");
        Self {
            fixture,
            planned: Vec::new(),
            forced: HashSet::new(),
            turns: HashSet::new(),
            n_steps: 0,
            is_closed: false,
        }
    }

    fn apply_action(&mut self, action: TestAction) {
        match self.command_for(action) {
            Some(command) => self.execute(&command),
            None => self.assert_invariants(),
        }
    }

    /// Returns the command of an action; `None`: it changed something outside the schedule, or
    /// nothing.
    fn command_for(&mut self, action: TestAction) -> Option<Command> {
        let s = &mut self.fixture.state;
        let running = s.running.clone();
        let held = running.as_ref().map(|it| (it.id, it.lease));
        match action {
            TestAction::Post(text) => return Some(post(text)),
            TestAction::PostByFay => return Some(post_by(FAY, "Fine.")),
            TestAction::SkipByFay => return Some(skip_by_fay()),
            TestAction::HumanTurns(on) => s.space.humans_take_turns = on,
            TestAction::TurnTimeout(seconds) => s.space.human_turn_timeout_s = seconds,
            TestAction::TurnTimedOut => {
                let round = s.round.as_ref()?.id;
                return Some(Command::TurnTimedOut { round });
            }
            TestAction::Whisper(to) => return Some(property_invariants::whisper_to(to)),
            TestAction::Mark(id, is_ooc) => return Some(mark(id, is_ooc)),
            TestAction::Due => {
                let run = s.queued.as_ref()?.id;
                return Some(Command::Claim { run });
            }
            TestAction::End(how) => {
                let (run, lease) = held?;
                let is_requested = running.is_some_and(|it| it.cancel_requested_at.is_some());
                let end = property_actions::end(how, is_requested);
                if end.text().is_some() && s.running.as_ref()?.speaker_space_membership_id.is_none()
                {
                    return None; // only a speaker writes
                }
                return Some(Command::RunEnded {
                    run,
                    lease,
                    end: Box::new(end),
                });
            }
            TestAction::Choose(choice) => {
                return fixture_director::choose_command(&self.fixture, choice.into_answer());
            }
            TestAction::LateEnd => {
                let (run, lease) = (held?.0, held?.1 - 1);
                return Some(Command::RunEnded {
                    run,
                    lease,
                    end: Box::new(success("Late.")),
                });
            }
            TestAction::Die => {
                let ((run, lease), silent_for_ms) = (held?, 30_000);
                return Some(Command::LeaseExpired {
                    run,
                    lease,
                    silent_for_ms,
                });
            }
            TestAction::Release => {
                let (run, lease) = held?;
                return Some(Command::RunReleased {
                    run,
                    lease,
                    usage: None,
                });
            }
            TestAction::RoundStalled => return Some(Command::RoundStalled),
            TestAction::Stop(keep_partial) => return Some(Command::Stop { keep_partial }),
            TestAction::Control(control) => {
                return property_actions::control(control, &self.fixture);
            }
            TestAction::Force(speaker) => {
                let speaker = speaker.map(MembershipId);
                let turn = ForcedTurn::new(speaker, "Eve", Viewer::Server);
                return Some(Command::ForceTalk(turn));
            }
            TestAction::Regenerate(message) => return Some(regenerate(message)),
            TestAction::Continue(message) => return Some(continue_command(message)),
            TestAction::RegenerateInPlace(message) => return Some(regenerate_in_place(message)),
            TestAction::Select(id, position) => return Some(select_swipe(id, position)),
            TestAction::RegenerateLastTurn(true) => {
                s.space.group_regenerate_mode = GroupRegenerateMode::LastTurn
            }
            TestAction::RegenerateLastTurn(false) => {
                s.space.group_regenerate_mode = GroupRegenerateMode::SingleMessage;
            }
            TestAction::Fork(id) => {
                self.fixture.fork_point = self.fixture.allowed_fork_point(MessageId(id))
            }
            TestAction::Show(id, visibility) => return Some(show(id, visibility)),
            TestAction::Edit(id) => return Some(edit(id)),
            TestAction::Member(id, status, participation) => {
                let members = s.members.iter_mut().filter(|it| it.id.0 == id);
                members.for_each(|it| (it.status, it.participation) = (status, participation));
            }
            TestAction::Order(order) => s.space.reply_order = order,
            TestAction::ApplyMemberChanges | TestAction::ApplySettings => {
                return Some(Command::ApplyChanges);
            }
            TestAction::Policy(policy) => s.space.during_generation_user_input_policy = policy,
            TestAction::Debounce(ms) => s.space.user_turn_debounce_ms = ms,
            TestAction::AllActivated(true) => s.space.replies_per_turn = RepliesPerTurn::Activated,
            TestAction::AllActivated(false) => s.space.replies_per_turn = RepliesPerTurn::One,
            TestAction::EditQueue(slots, is_fresh) => {
                let round = s.round.as_ref().map(|it| it.id);
                let round = round.filter(|_| is_fresh).unwrap_or_else(RoundId::new);
                return Some(property_actions::edit_queue(round, slots));
            }
            TestAction::Auto(on) => s.space.auto_mode_enabled = on,
            TestAction::Copilot(steps) => self.set_copilot(steps),
            TestAction::StartCopilot => return Some(Command::CopilotStarted { membership: EVE }),
            TestAction::AutoTurns(n) => s.space.auto_mode_max_turns = n,
            TestAction::Provider(there) => self.fixture.has_provider = there,
            TestAction::TokenLimitReached(reached) => {
                self.fixture.has_reached_token_limit = reached
            }
            TestAction::Archive(true) => s.space.status = space::SpaceStatus::Archived,
            TestAction::Archive(false) => {
                s.space.status = space::SpaceStatus::Active;
                self.is_closed = false;
            }
            TestAction::Close => {
                self.is_closed = s.space.status == space::SpaceStatus::Archived;
                return Some(Command::SpaceClosed(run::RunCancelReason::Archived));
            }
            TestAction::AdvanceClock(ms) => self.fixture.now = self.fixture.now.plus_ms(ms),
        }
        None
    }

    fn execute(&mut self, command: &Command) {
        // The fixture panics when a plan cannot be applied; a rejection changes nothing.
        self.fixture.load_for(command);
        let before = self.fixture.state.clone();
        let outcome = self.fixture.execute(command);
        if let Ok((plan, _)) = &outcome {
            property_invariants::assert_plan_valid(&before, command, plan, &self.fixture);
        }
        if let Ok((plan, _)) = &outcome
            && property_invariants::is_input(command, plan)
        {
            self.turns.clear();
        }
        if let Ok((plan, _)) = outcome
            && let Some(enqueue) = plan.enqueue
        {
            let at = enqueue.run.run_after;
            assert!(
                at.is_none_or(|at| at >= self.fixture.now),
                "planned for a time in the past"
            );
            if enqueue.run.kind == run::RunKind::AutoMode {
                let turn = (enqueue.run.round_id, enqueue.run.slot_position);
                self.turns.insert(turn);
                assert!(self.turns.len() <= MAX_TURNS, "I13: too many turns");
            }
            if enqueue.run.kind == run::RunKind::ForceTalk {
                let run = self.fixture.state.queued.as_ref().expect("just queued").id;
                self.forced.insert(run);
            }
            if matches!(command, Command::MessagePosted(_)) {
                let run = self.fixture.state.queued.as_ref().expect("just queued").id;
                self.planned
                    .push((run, self.fixture.state.conversation.last_seq));
            }
        }
        self.assert_invariants();
    }

    fn assert_invariants(&self) {
        let s = &self.fixture.state;
        property_invariants::assert_round_valid(s);
        if let Some(round) = &s.round {
            property_invariants::assert_speaker_of_slot(s, round);
        }
        if self.is_closed {
            assert!(
                s.queued.is_none() && s.running.is_none() && s.round.is_none(),
                "a run or round is active in an archived space"
            );
        }
        self.fixture.assert_swipes_consistent();
        self.assert_copilot_steps();
        self.assert_no_run_lost();
    }

    fn set_copilot(&mut self, steps: Option<i64>) {
        let conversation = self.fixture.state.conversation.id;
        let member = self.fixture.member_mut(EVE);
        member.copilot_mode = match steps {
            Some(_) => CopilotMode::Full,
            None => CopilotMode::None,
        };
        member.copilot_remaining_steps = steps;
        member.copilot_conversation_id = Some(conversation);
        self.n_steps += steps.unwrap_or_default();
    }

    /// Asserts that a copilot writes at most as many texts as it was given steps.
    fn assert_copilot_steps(&self) {
        let messages = self.fixture.messages.iter();
        let written =
            messages.filter(|it| it.space_membership_id == EVE && it.conversation_run_id.is_some());
        let n_written = i64::try_from(written.count()).expect("few texts");
        assert!(
            n_written <= self.n_steps,
            "a copilot continues without steps"
        );
    }

    /// A run that was planned for a message is queued, runs and sees the message, or has
    /// ended.
    fn assert_no_run_lost(&self) {
        let s = &self.fixture.state;
        for (id, seq) in &self.planned {
            let mut all = self.fixture.ended.iter().chain(&s.queued).chain(&s.running);
            let run = all.find(|it| it.id == *id);
            let run = run.unwrap_or_else(|| panic!("the answer to message {seq} is lost"));
            assert!(run.cutoff_seq.is_none_or(|cutoff| cutoff >= *seq));
        }
        for id in &self.forced {
            let mut all = self.fixture.ended.iter().chain(&s.queued).chain(&s.running);
            assert!(all.any(|it| it.id == *id), "I17: a forced turn is lost");
        }
    }

    /// Runs until idle: nothing new happens, and every reply succeeds.
    fn run_until_idle(&mut self) {
        for _ in 0..100 {
            let running = self.fixture.state.running.as_ref();
            if running.is_some_and(|it| it.speaker_space_membership_id.is_none()) {
                self.apply_action(TestAction::Choose(ChoiceKind::Fails));
            } else if running.is_some() {
                self.apply_action(TestAction::End(EndKind::Success));
            } else if let Some(queued) = &self.fixture.state.queued {
                let at = queued.run_after.unwrap_or(self.fixture.now);
                self.fixture.now = self.fixture.now.max(at);
                self.apply_action(TestAction::Due);
            } else {
                return;
            }
        }
        panic!("the conversation did not become idle");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn every_sequence_of_commands_keeps_all_invariants(
        n_characters in select(vec![0, 1, 2, 3, 4, 4]),
        order in reply_order_strategy(),
        policy in input_policy_strategy(),
        actions in prop::collection::vec(action_strategy(), 1..80),
    ) {
        let mut test = PropertyTest::new(n_characters);
        test.apply_action(TestAction::Order(order));
        test.apply_action(TestAction::Policy(policy));

        for action in actions {
            test.apply_action(action);
        }
        test.run_until_idle();

        let state = test.fixture.state.round.map(|it| it.state);
        prop_assert!(state != Some(round::RoundState::Generating), "the round has no run");
    }
}

/// A sequence that the property test found: the claim, not the post, skips a forced speaker that
/// can no longer speak.
#[test]
fn a_post_keeps_a_resumed_forced_run_of_a_speaker_who_became_an_observer() {
    let mut test = PropertyTest::new(2);
    for action in [
        TestAction::Order(space::ReplyOrder::Natural),
        TestAction::Post("Bob?"),
        TestAction::StartCopilot,
        TestAction::Force(None),
        TestAction::Post("Hi."),
        TestAction::Stop(false),
        TestAction::Control(ControlAction::Resume),
        TestAction::Post("Hi."),
        TestAction::Member(3, MembershipStatus::Active, Participation::Observer),
        TestAction::Post("Hi."),
    ] {
        test.apply_action(action);
    }

    let queued = test.fixture.state.queued.as_ref().expect("a queued run");
    assert_eq!(queued.reason, run::RunReason::Resume);
}

/// A sequence that the property test found: the mentioned person got the slot of a forced run for which the
/// director had not chosen a speaker yet.
#[test]
fn a_mentioned_person_is_not_forced_to_speak() {
    let mut test = PropertyTest::new(1);
    for action in [
        TestAction::Order(space::ReplyOrder::Director),
        TestAction::Policy(space::InputPolicy::Queue),
        TestAction::Force(None),
        TestAction::HumanTurns(true),
        TestAction::Post("Fay, then Ada."),
        TestAction::ApplyMemberChanges,
    ] {
        test.apply_action(action);
    }

    let round = test.fixture.state.round.as_ref().expect("a round");
    let slots = round.slots.0.iter();
    let slots = slots.map(|it| (it.space_membership_id, it.forced));
    assert_eq!(
        slots.collect::<Vec<_>>(),
        [(None, true), (Some(FAY), false)]
    );
}
