//! Defines the actions of the planner's property tests and generates random ones.

use proptest::prelude::*;
use proptest::sample::select;

use crate::conversations::message::Visibility;
use crate::spaces::membership::{MembershipStatus, Participation};
use crate::spaces::space::{InputPolicy, ReplyOrder};

/// The next action. A change by an endpoint (of a member, a setting or the archive) and the command
/// that applies it to the schedule are two actions, because anything may happen in between.
#[derive(Clone, Debug)]
pub enum TestAction {
    Post(&'static str),
    /// Eve whispers to these members.
    Whisper(Vec<i64>),
    Mark(i64, bool),
    Due,
    End(EndKind),
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
    /// For the active round, or for another.
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
    let texts = select(vec!["Hi.", "Bob?", "Ada, and Cid!", "((Back soon.))"]);
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
        4 => prop::collection::vec(1..6_i64, 0..3).prop_map(A::Whisper),
        3 => (1..12_i64, any::<bool>()).prop_map(|(id, is_ooc)| A::Mark(id, is_ooc)),
        10 => Just(A::Due),
        8 => ends.prop_map(A::End),
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
        2 => (2..6_i64, statuses, parts).prop_map(|(id, life, part)| A::Member(id, life, part)),
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
        2 => (prop::collection::vec(2..6_i64, 0..4), prop::bool::weighted(0.9))
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
    select(vec![O::Manual, O::Natural, O::List, O::Pooled])
}

pub fn input_policy_strategy() -> impl Strategy<Value = InputPolicy> {
    use InputPolicy as P;
    select(vec![P::Reject, P::Queue, P::Restart])
}
