//! Defines the actions of the planner's property tests and generates random ones.

use base::ids::{MembershipId, RoundId};
use proptest::prelude::*;
use proptest::sample::select;

use crate::conversations::audience::viewer::Viewer;
use crate::conversations::message::Visibility;
use crate::runs::scheduling::command::{Command, ExecutionEnd, SlotsEdit};
use crate::runs::scheduling::director::choice::{DirectorAnswer, DirectorChoice, DirectorFailure};
use crate::runs::scheduling::planner::fixture::{
    PlannerFixture, RETRY, SKIP, failure, generated_text, success,
};
use crate::runs::store::run;
use crate::spaces::membership::{MembershipStatus, Participation};
use crate::spaces::space::{InputPolicy, ReplyOrder};

/// The next action. A change by an endpoint (of a member, a setting or the archive) and the command
/// that applies it to the schedule are two actions, because anything may happen in between.
#[derive(Clone, Debug)]
pub enum TestAction {
    Post(&'static str),
    /// Fay, another person, posts.
    PostByFay,
    /// Fay, who may skip only her own turn, skips.
    SkipByFay,
    HumanTurns(bool),
    /// The seconds after which the turn of a person is skipped; 0: never.
    TurnTimeout(i64),
    TurnTimedOut,
    /// Eve whispers to these members.
    Whisper(Vec<i64>),
    Mark(i64, bool),
    Due,
    End(EndKind),
    /// The director answers for the running run, which may have a speaker.
    Choose(ChoiceKind),
    LateEnd,
    Die,
    Release,
    RoundStalled,
    Stop(bool),
    Control(ControlAction),
    Force(Option<i64>),
    Regenerate(Option<i64>),
    RegenerateInPlace(Option<i64>),
    Continue(Option<i64>),
    RegenerateLastTurn(bool),
    Select(i64, i64),
    Fork(i64),
    Show(i64, Visibility),
    Edit(i64),
    Member(i64, MembershipStatus, Participation),
    ApplyMemberChanges,
    Order(ReplyOrder),
    ApplySettings,
    Policy(InputPolicy),
    Debounce(i64),
    AllActivated(bool),
    Auto(bool),
    /// For the active round, or for another. 0: the slot of the director.
    EditQueue(Vec<i64>, bool),
    AutoTurns(i64),
    /// Eve's copilot is on with this number of steps, or off.
    Copilot(Option<i64>),
    StartCopilot,
    Provider(bool),
    TokenLimitReached(bool),
    Archive(bool),
    Close,
    AdvanceClock(i64),
}

/// How a run ends.
#[derive(Clone, Copy, Debug)]
pub enum EndKind {
    Success,
    Failure,
    PartialIfRequested,
    EmptyIfRequested,
}

/// How the director answers.
#[derive(Clone, Debug)]
pub enum ChoiceKind {
    /// It names these members, of whom some may not speak.
    Names(Vec<i64>),
    Fails,
}

impl ChoiceKind {
    pub fn into_answer(self) -> DirectorChoice {
        let answer = match self {
            Self::Names(members) => Ok(DirectorAnswer {
                speakers: members.into_iter().map(MembershipId).collect(),
                reason: "They were asked.".to_owned(),
            }),
            Self::Fails => Err(DirectorFailure::Timeout),
        };
        DirectorChoice {
            answer,
            usage: None,
        }
    }
}

/// A control that a user may use.
#[derive(Clone, Copy, Debug)]
pub enum ControlAction {
    Pause,
    Resume,
    Skip,
    Retry,
    CancelRunning,
    CancelQueued,
}

/// Generates any action, frequent ones more often.
pub fn action_strategy() -> impl Strategy<Value = TestAction> {
    use TestAction as A;
    let texts = select(vec![
        "Hi.",
        "Bob?",
        "Ada, and Cid!",
        "Fay, then Ada.",
        "((Back soon.))",
    ]);
    use EndKind as H;
    let ends = select(vec![
        H::Success,
        H::Failure,
        H::PartialIfRequested,
        H::EmptyIfRequested,
    ]);
    use ControlAction as B;
    let buttons = [B::Pause, B::Resume, B::Skip, B::Retry];
    let cancels = [B::CancelRunning, B::CancelQueued];
    let buttons = select([&buttons[..], &cancels].concat());
    let visibilities = select(vec![
        Visibility::Normal,
        Visibility::Excluded,
        Visibility::Hidden,
    ]);
    let statuses = select(vec![
        MembershipStatus::Active,
        MembershipStatus::Active,
        MembershipStatus::Removed,
    ]);
    let parts = select(vec![
        Participation::Active,
        Participation::Active,
        Participation::Muted,
        Participation::Observer,
    ]);
    prop_oneof![
        6 => texts.prop_map(A::Post),
        5 => Just(A::PostByFay),
        2 => Just(A::SkipByFay),
        3 => prop::bool::weighted(0.8).prop_map(A::HumanTurns),
        1 => select(vec![0, 1, 30]).prop_map(A::TurnTimeout),
        2 => Just(A::TurnTimedOut),
        4 => prop::collection::vec(1..7_i64, 0..3).prop_map(A::Whisper),
        3 => (1..12_i64, any::<bool>()).prop_map(|(id, is_ooc)| A::Mark(id, is_ooc)),
        10 => Just(A::Due),
        8 => ends.prop_map(A::End),
        6 => choice_strategy().prop_map(A::Choose),
        6 => buttons.prop_map(A::Control),
        3 => any::<bool>().prop_map(A::Stop),
        2 => select(vec![None, Some(2), Some(3), Some(9)]).prop_map(A::Force),
        3 => prop::option::of(1..12_i64).prop_map(A::Regenerate),
        2 => prop::option::of(1..12_i64).prop_map(A::RegenerateInPlace),
        4 => prop::option::weighted(0.3, 1..12_i64).prop_map(A::Continue),
        1 => any::<bool>().prop_map(A::RegenerateLastTurn),
        2 => (1..12_i64, 0..3_i64).prop_map(|(id, position)| A::Select(id, position)),
        1 => (1..12_i64).prop_map(A::Fork),
        2 => (1..12_i64, visibilities).prop_map(|(id, it)| A::Show(id, it)),
        2 => (2..7_i64, statuses, parts).prop_map(|(id, life, part)| A::Member(id, life, part)),
        2 => Just(A::ApplyMemberChanges),
        2 => prop::option::weighted(0.7, 1..4_i64).prop_map(A::Copilot),
        2 => Just(A::StartCopilot),
        6 => select(vec![
            A::LateEnd, A::Die, A::Die, A::Release, A::Release, A::RoundStalled, A::ApplySettings,
            A::Close,
        ]),
        2 => (1..12_i64).prop_map(A::Edit),
        2 => reply_order_strategy().prop_map(A::Order),
        2 => input_policy_strategy().prop_map(A::Policy),
        1 => select(vec![0, 500, 60_000]).prop_map(A::Debounce),
        2 => any::<bool>().prop_map(A::AllActivated),
        2 => any::<bool>().prop_map(A::Auto),
        2 => (prop::collection::vec(select(vec![0, 0, 2, 3, 4, 5, 6]), 0..4), prop::bool::weighted(0.9))
            .prop_map(|(slots, fresh)| A::EditQueue(slots, fresh)),
        1 => (1..5_i64).prop_map(A::AutoTurns),
        1 => prop::bool::weighted(0.8).prop_map(A::Provider),
        1 => select(vec![false, false, false, true]).prop_map(A::TokenLimitReached),
        1 => prop::bool::weighted(0.4).prop_map(A::Archive),
        2 => (1..2_000_i64).prop_map(A::AdvanceClock),
    ]
}

pub fn reply_order_strategy() -> impl Strategy<Value = ReplyOrder> {
    use ReplyOrder as O;
    select(vec![O::Manual, O::Natural, O::List, O::Pooled, O::Director])
}

pub fn input_policy_strategy() -> impl Strategy<Value = InputPolicy> {
    use InputPolicy as P;
    select(vec![P::Reject, P::Queue, P::Restart])
}

fn choice_strategy() -> impl Strategy<Value = ChoiceKind> {
    let names = prop::sample::subsequence(vec![1_i64, 2, 3, 4, 5, 9], 1..5).prop_shuffle();
    prop_oneof![3 => names.prop_map(ChoiceKind::Names), 1 => Just(ChoiceKind::Fails)]
}

/// Returns Eve's edit of a round; 0 stands for the slot of the director.
pub fn edit_queue(round: RoundId, slots: Vec<i64>) -> Command {
    let slots = slots.into_iter();
    Command::EditQueue(SlotsEdit {
        round,
        slots: slots
            .map(|it| (it != 0).then_some(MembershipId(it)))
            .collect(),
        by: "Eve".to_owned(),
        viewer: Viewer::Server,
    })
}

/// Returns how the executor ends a run.
pub fn end(how: EndKind, is_requested: bool) -> ExecutionEnd {
    match how {
        EndKind::Failure => failure(),
        EndKind::PartialIfRequested if is_requested => ExecutionEnd::Canceled {
            partial: Some(generated_text("Hel")),
            usage: None,
            prompt: None,
        },
        EndKind::EmptyIfRequested if is_requested => ExecutionEnd::Canceled {
            partial: None,
            usage: None,
            prompt: None,
        },
        _ => success("Hello."),
    }
}

/// Returns the command of a control; `None` if there is no run to cancel.
pub fn control(control: ControlAction, fixture: &PlannerFixture) -> Option<Command> {
    let cancel = |run: &Option<run::Model>| {
        let run = run.as_ref()?.id;
        Some(Command::CancelRun { run })
    };
    match control {
        ControlAction::Pause => Some(Command::Pause),
        ControlAction::Resume => Some(Command::Resume),
        ControlAction::Skip => Some(SKIP),
        ControlAction::Retry => Some(RETRY),
        ControlAction::CancelRunning => cancel(&fixture.state.running),
        ControlAction::CancelQueued => cancel(&fixture.state.queued),
    }
}
