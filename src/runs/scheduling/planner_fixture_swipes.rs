//! Loads the facts that commands need from the planner's test fixture, and applies changes of its
//! messages and swipes.

use base::ids::{MembershipId, MessageId, SwipeId};

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::audience::viewer::Viewer;
use crate::conversations::{message, swipe};
use crate::runs::scheduling::command::Command;
use crate::runs::scheduling::messages::post_audience;
use crate::runs::scheduling::planner::fixture::PlannerFixture;
use crate::runs::scheduling::planner::fixture_writer::provider_row;
use crate::runs::scheduling::state::command_facts::{CommandFacts, RegenerateFacts, TargetMessage};
use crate::runs::store::run;
use crate::spaces::space::GroupRegenerateMode;

impl PlannerFixture {
    /// Returns what `state_loader::load` loads for this command alone.
    pub(super) fn facts_for(&mut self, command: &Command) -> CommandFacts {
        match command {
            Command::Claim { .. } => self.claim_facts(),
            Command::Retry { .. }
            | Command::Resume
            | Command::Skip { .. }
            | Command::CancelRun { .. } => CommandFacts::Continuation {
                newest_run: self.newest_run(),
                newest_seen: self.newest_seen_by_all_of(None),
            },
            Command::CopilotStarted { .. } => CommandFacts::RequestedTurn {
                newest_seen: self.newest_seen_by_all_of(None),
            },
            Command::ForceTalk(turn) => {
                let audience = post_audience::audience_of_reply(&self.state, turn);
                let audience = audience.unwrap_or_default();
                CommandFacts::RequestedTurn {
                    newest_seen: self.newest_seen_by_all_of(audience.as_ref()),
                }
            }
            Command::SetVisibility { message, .. } | Command::SetRemembered { message, .. } => {
                CommandFacts::Message(self.target_message(*message))
            }
            Command::SetOutOfCharacter { message, .. } => {
                let target = self.target_message(*message);
                let seq = target.as_ref().map_or(0, |it| it.row.seq);
                let mut earlier = self.messages.iter().rev().filter(|it| it.seq < seq);
                let before = earlier.find(|it| it.is_scheduled()).cloned();
                CommandFacts::OutOfCharacter { target, before }
            }
            Command::EditMessage(edit) => CommandFacts::Message(self.target_message(edit.message)),
            Command::SelectSwipe {
                message, position, ..
            } => CommandFacts::Swipe {
                target: self.target_message(*message),
                swipe: self.swipe_at(*message, *position),
            },
            Command::Regenerate(request)
            | Command::RegenerateInPlace(request)
            | Command::Continue(request) => {
                let target = request.message.or_else(|| self.newest_seen(request.viewer));
                let target = target.and_then(|it| self.target_message(it));
                let may_replace_turn = matches!(command, Command::Regenerate(_));
                CommandFacts::Regenerate(
                    target.map(|it| self.regenerate_facts(it, may_replace_turn)),
                )
            }
            Command::RunEnded { .. } => {
                let running = self.state.running.as_ref();
                match running.and_then(|it| it.debug.target_message_id) {
                    Some(id) => CommandFacts::Message(self.target_message(id)),
                    None => CommandFacts::None,
                }
            }
            Command::MessagePosted(post) => CommandFacts::Post {
                answered: post
                    .reply_to
                    .and_then(|it| self.audience_of_answered(it, post.author)),
            },
            Command::InsertGreetings(_) => CommandFacts::Greetings {
                greeted: self.greeted.clone(),
            },
            _ => CommandFacts::None,
        }
    }

    fn shown_message(&self, id: MessageId) -> Option<&message::Model> {
        let row = self.messages.iter().find(|it| it.id == id);
        row.filter(|it| it.visibility != message::Visibility::Hidden)
    }

    fn claim_facts(&self) -> CommandFacts {
        let queued = self.state.queued.as_ref();
        let target = queued.and_then(|it| it.debug.target_message_id);
        let tail = self.state.tail.as_ref().map(|it| it.id);
        let shown = target.and_then(|it| self.shown_message(it));
        let is_continue = queued.is_some_and(|it| it.kind == run::RunKind::Continue);
        let is_checked = is_continue || queued.is_some_and(|it| it.debug.in_place);
        CommandFacts::Claim {
            provider: self.has_provider.then(provider_row),
            has_reached_token_limit: self.has_reached_token_limit,
            is_target_hidden: is_checked && target != tail && target.is_some() && shown.is_none(),
            continued: shown.filter(|_| is_continue).cloned(),
        }
    }

    /// Returns the audience of a message that a member can answer.
    fn audience_of_answered(&self, id: MessageId, by: MembershipId) -> Option<Option<Audience>> {
        let row = self.shown_message(id)?;
        let is_seen = Viewer::Member(by).sees(row.audience.as_ref());
        is_seen.then(|| row.audience.clone())
    }

    fn newest_seen(&self, viewer: Viewer) -> Option<MessageId> {
        let is_seen = |it: &&message::Model| it.is_scheduled() && viewer.sees(it.audience.as_ref());
        self.messages.iter().rev().find(is_seen).map(|it| it.id)
    }

    fn newest_seen_by_all_of(&self, readers: Option<&Audience>) -> Option<message::Model> {
        let is_seen = |it: &&message::Model| it.is_scheduled() && it.is_seen_by_all_of(readers);
        self.messages.iter().rev().find(is_seen).cloned()
    }

    fn newest_run(&self) -> Option<run::Model> {
        let active = [&self.state.queued, &self.state.running];
        let all = self.ended.iter().chain(active.into_iter().flatten());
        all.max_by_key(|it| it.run_seq).cloned()
    }

    /// Returns what the facts contain of a message.
    fn target_message(&self, id: MessageId) -> Option<TargetMessage> {
        let row = self.messages.iter().find(|it| it.id == id)?.clone();
        Some(TargetMessage {
            row,
            is_fork_point: self.fork_point == Some(id),
            n_swipes: self.n_swipes(id),
        })
    }

    /// Returns what a regenerate of this message replaces, and forgets the replies since the
    /// message that it answers if the whole turn may be regenerated.
    fn regenerate_facts(
        &mut self,
        target: TargetMessage,
        may_replace_turn: bool,
    ) -> RegenerateFacts {
        let audience = &target.row.audience;
        let is_shown = |it: &&message::Model| {
            it.is_scheduled() && (it.audience.is_none() || it.audience == *audience)
        };
        let answers =
            |it: &&message::Model| it.seq < target.row.seq && it.role == message::MessageRole::User;
        let shown = self.messages.iter().filter(is_shown);
        let answered = shown.clone().rev().find(answers).cloned();
        let shown_after = shown.clone().any(|it| it.seq > target.row.seq);
        let user_seq = answered.as_ref().map_or(i64::MAX, |it| it.seq);
        let last_turn: Vec<_> = shown
            .clone()
            .filter(|it| it.seq > user_seq)
            .filter(|it| Some(&it.audience) == answered.as_ref().map(|it| &it.audience))
            .cloned()
            .collect();
        let mode = self.state.space.group_regenerate_mode;
        if may_replace_turn && mode == GroupRegenerateMode::LastTurn {
            // The new speakers are chosen as if no character had replied.
            let is_speech = |it: &&message::Model| {
                it.role == message::MessageRole::Assistant && it.seq < user_seq
            };
            let newest = shown.rev().find(is_speech);
            self.state.last_speaker = newest.map(|it| it.space_membership_id);
        }
        let is_fork_point = |it: &message::Model| self.fork_point == Some(it.id);
        RegenerateFacts {
            has_fork_point_in_last_turn: last_turn.iter().any(is_fork_point),
            is_newest: !shown_after,
            target,
            answered,
            last_turn,
        }
    }

    pub(super) fn hide_messages(&mut self, turn: &[message::Model]) {
        for row in turn {
            self.message_mut(row.id).visibility = message::Visibility::Hidden;
        }
    }

    /// Returns the swipe that a command refers to.
    fn swipe_at(&self, id: MessageId, position: i64) -> Option<swipe::Model> {
        let of_message = |it: &&swipe::Model| it.message_id == id && it.position == position;
        self.swipes.iter().find(of_message).cloned()
    }

    pub(super) fn add_swipe(&mut self, text: swipe::SwipeText) {
        let target = self.state.facts.target().expect("a message");
        let row = target.row.clone();
        if self.n_swipes(row.id) == 0 {
            self.store_swipe(row.id, swipe::SwipeText::from_message(&row));
        }
        let position = self.store_swipe(row.id, text.clone());
        text.select_on(self.message_mut(row.id), position);
    }

    /// Applies a user's edit to the text of a message.
    pub(super) fn rewrite(&mut self, id: MessageId, content: &str) {
        let row = self.message_mut(id);
        row.content = content.to_owned();
        let position = row.active_swipe;
        let mut texts = self.swipes.iter_mut();
        let shown = texts.find(|it| it.message_id == id && it.position == position);
        if let Some(shown) = shown {
            shown.content = content.to_owned();
        }
    }

    pub(super) fn show_swipe(&mut self, swipe: swipe::Model) {
        let (id, position) = (swipe.message_id, swipe.position);
        swipe::SwipeText::from(swipe).select_on(self.message_mut(id), position);
    }

    /// Returns the message if a branch may start at it: not while it is regenerated.
    pub fn allowed_fork_point(&self, id: MessageId) -> Option<MessageId> {
        let active = [&self.state.queued, &self.state.running]
            .into_iter()
            .flatten();
        let mut targets = active.map(|it| it.debug.target_message_id);
        match targets.any(|it| it == Some(id)) {
            true => self.fork_point,
            false => Some(id),
        }
    }

    /// Asserts that the text of a message with swipes is that of its active swipe.
    fn assert_active_swipes_shown(&self) {
        for row in &self.messages {
            let mut texts = self.swipes.iter().filter(|it| it.message_id == row.id);
            let shown = texts.clone().find(|it| it.position == row.active_swipe);
            assert!(texts.next().is_none() || shown.is_some_and(|it| it.content == row.content));
        }
    }

    /// A run has at most one message or one swipe of its target, and only runs that succeeded
    /// or whose text was kept have one.
    pub fn assert_swipes_consistent(&self) {
        self.assert_active_swipes_shown();
        let n_texts = |run: &run::Model| match run.debug.target_message_id {
            Some(target) => {
                let swipes = self.swipes.iter();
                let wrote = |it: &&swipe::Model| it.conversation_run_id == Some(run.id);
                let all = swipes
                    .filter(wrote)
                    .map(|it| assert_eq!(it.message_id, target));
                all.count()
            }
            None => {
                let messages = self.messages.iter();
                let wrote = |it: &&message::Model| it.conversation_run_id == Some(run.id);
                messages.filter(wrote).count()
            }
        };
        for run in &self.ended {
            let right = match run.status {
                run::RunStatus::Succeeded => n_texts(run) == 1,
                run::RunStatus::Canceled if run.keep_partial => n_texts(run) <= 1,
                _ => n_texts(run) == 0,
            };
            assert!(right, "I5: {run:?}");
            let began = run.started_at.unwrap_or(run.created_at);
            assert!(run.created_at <= began && Some(began) <= run.finished_at);
        }
        let active = [&self.state.queued, &self.state.running];
        assert!(active.into_iter().flatten().all(|it| n_texts(it) == 0));
    }

    fn store_swipe(&mut self, id: MessageId, text: swipe::SwipeText) -> i64 {
        let position = self.n_swipes(id);
        self.swipes.push(swipe::Model {
            id: SwipeId(0),
            message_id: id,
            position,
            content: text.content,
            conversation_run_id: text.run,
            metadata: text.metadata,
            token_count: text.token_count,
            edited_at: text.edited_at,
            edited_by: text.edited_by,
        });
        position
    }

    fn n_swipes(&self, id: MessageId) -> i64 {
        let of_message = self.swipes.iter().filter(|it| it.message_id == id);
        i64::try_from(of_message.count()).expect("a few")
    }
}
