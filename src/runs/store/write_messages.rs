//! Writes the changes of a plan to messages: appends, changes or hides them, and adds or selects
//! swipes.

use base::ids::{MembershipId, MessageId};
use sea_orm::{ActiveModelTrait, DbErr, EntityTrait, IntoActiveModel};

use crate::attachments::attachment;
use crate::conversations::revisions::message_revision;
use crate::conversations::translations::message_translation;
use crate::conversations::{message, newest_messages, swipe, timeline};
use crate::memories::memory_settings::MemberSwitches;
use crate::memories::message_changes::MessageChange;
use crate::regex_scripts::writer_scripts::UNSCRIPTED_KEY;
use crate::runs::scheduling::command::MessageEdit;
use crate::runs::scheduling::plan::NewMessage;
use crate::runs::scheduling::state::command_facts::CommandFacts;
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::store::plan_writer::{PlanWriter, WrittenMessage, WrittenPlan, next_rev};
use crate::runs::store::write_effects::union;
use crate::spaces::posts::persona_use;

/// The metadata key of a message whose mark was set or removed after it was posted.
pub const OOC_CHANGED: &str = "ooc_changed";

impl PlanWriter<'_> {
    /// Appends a message with its other swipes.
    pub(super) async fn append_message(
        &self,
        schedule: &mut ScheduleState,
        written: &mut WrittenPlan,
        new: NewMessage,
    ) -> Result<(), DbErr> {
        let id = schedule.conversation.id;
        let mut row = timeline::new_model(id, new.author, new.role, new.content, self.now);
        schedule.conversation.last_seq += 1;
        row.seq = schedule.conversation.last_seq;
        row.rev = next_rev(schedule);
        row.client_id = new.client_id;
        row.reply_to_message_id = new.reply_to;
        row.conversation_run_id = new.run;
        row.token_count = new.token_count;
        let is_by_copilot = row.role == message::MessageRole::User && new.run.is_some();
        row.set_persona(match is_by_copilot {
            true => persona_use::find_for_copilot(self.tx, &schedule.members, new.author).await?,
            false => new.persona,
        });
        row.metadata = new.metadata;
        row.is_ooc = new.is_ooc;
        row.has_attachments = !new.attachments.is_empty();
        (row.audience, row.is_for_people) = (new.audience, new.is_for_people);
        row.is_remembered = MemberSwitches::of(&schedule.members, new.author).learn;
        let row = timeline::append(self.tx, row).await?;
        if row.has_attachments {
            attachment::post(self.tx, row.id, &new.attachments).await?;
        }
        let alternates = new.alternates.iter().map(|it| it.content.len());
        schedule.conversation.text_bytes += n_bytes(row.content.len() + alternates.sum::<usize>());
        if row.is_scheduled() {
            set_newest(schedule, &row);
        }
        let n_swipes = swipe::append_all(self.tx, row.id, 0, new.alternates).await?;
        written.messages.push(WrittenMessage {
            row,
            is_new: true,
            n_swipes,
        });
        Ok(())
    }

    /// Hides the messages after the user message that is answered again.
    pub(super) async fn hide_messages(
        &self,
        schedule: &mut ScheduleState,
        written: &mut WrittenPlan,
        turn: Vec<message::Model>,
    ) -> Result<(), DbErr> {
        let mut remade = None;
        let hidden: Vec<MessageId> = turn.iter().map(|it| it.id).collect();
        for mut row in turn {
            row.visibility = message::Visibility::Hidden;
            row.rev = next_rev(schedule);
            let active = row.clone().into_active_model().reset_all();
            message::Entity::update(active).exec(self.tx).await?;
            self.hide_attachments(&row).await?;
            let seqs = self
                .update_memory(schedule, written, &row, MessageChange::Hidden)
                .await?;
            remade = union(remade, seqs);
            written.messages.push(WrittenMessage {
                row,
                is_new: false,
                n_swipes: 0,
            });
        }
        message_translation::delete_for(self.tx, hidden).await?;
        if let Some(seqs) = remade {
            self.learn_again(schedule, seqs).await?;
        }
        if let CommandFacts::Regenerate(Some(facts)) = &schedule.facts {
            schedule.tail.clone_from(&facts.answered);
        }
        self.refresh_newest(schedule).await
    }

    /// Sets or removes the mark of a message that is out of character.
    pub(super) async fn set_out_of_character(
        &self,
        schedule: &mut ScheduleState,
        written: &mut WrittenPlan,
        is_ooc: bool,
    ) -> Result<(), DbErr> {
        let change = |it: &mut message::Model| {
            it.is_ooc = is_ooc;
            // A repetition of the post is still the same post.
            it.metadata[OOC_CHANGED] = true.into();
        };
        self.update_target_message(schedule, written, change).await
    }

    /// Replaces the shown text by a user's edit, and keeps the replaced text as a revision.
    pub(super) async fn set_content(
        &self,
        schedule: &mut ScheduleState,
        written: &mut WrittenPlan,
        edit: MessageEdit,
    ) -> Result<(), DbErr> {
        let now = self.now;
        let change = |it: &mut message::Model| {
            it.content = edit.content;
            it.token_count = edit.token_count;
            it.edited_at = Some(now);
            it.edited_by = edit.by;
            let Some(metadata) = it.metadata.as_object_mut() else {
                return;
            };
            match edit.unscripted {
                Some(text) => metadata.insert(UNSCRIPTED_KEY.to_owned(), text.into()),
                None => metadata.shift_remove(UNSCRIPTED_KEY),
            };
        };
        if let Some(target) = schedule.facts.target() {
            let stored = message_revision::store(self.tx, &target.row, (edit.by, now)).await?;
            schedule.conversation.text_bytes += stored;
        }
        let before = schedule.conversation.text_bytes;
        self.update_target_message(schedule, written, change)
            .await?;
        match schedule.facts.target().filter(|it| it.n_swipes > 0) {
            Some(target) => {
                // The text is stored a second time, as a swipe.
                schedule.conversation.text_bytes += schedule.conversation.text_bytes - before;
                swipe::update_active(self.tx, &target.row).await
            }
            None => Ok(()),
        }
    }

    /// Adds a swipe and shows it. If the message had no swipes, its text becomes the first.
    pub(super) async fn add_swipe(
        &self,
        schedule: &mut ScheduleState,
        written: &mut WrittenPlan,
        text: swipe::SwipeText,
    ) -> Result<(), DbErr> {
        let Some(target) = schedule.facts.target_mut() else {
            return Ok(());
        };
        let first = (target.n_swipes == 0).then(|| swipe::SwipeText::from_message(&target.row));
        let texts: Vec<swipe::SwipeText> = first.into_iter().chain([text.clone()]).collect();
        let stored: usize = texts.iter().map(|it| it.content.len()).sum();
        schedule.conversation.text_bytes += n_bytes(stored);
        target.n_swipes +=
            swipe::append_all(self.tx, target.row.id, target.n_swipes, texts).await?;
        let position = target.n_swipes - 1;
        let show = |it: &mut message::Model| {
            text.select_on(it, position);
            it.swipe_chosen_by = None;
        };
        self.update_target_message(schedule, written, show).await
    }

    /// Shows an existing swipe that a membership selected.
    pub(super) async fn show_swipe(
        &self,
        schedule: &mut ScheduleState,
        written: &mut WrittenPlan,
        (swipe, by): (swipe::Model, Option<MembershipId>),
    ) -> Result<(), DbErr> {
        let position = swipe.position;
        let text = swipe::SwipeText::from(swipe);
        let show = |it: &mut message::Model| {
            text.select_on(it, position);
            it.swipe_chosen_by = by;
        };
        self.update_target_message(schedule, written, show).await
    }

    /// Changes the target message and its counters.
    pub(super) async fn update_target_message(
        &self,
        schedule: &mut ScheduleState,
        written: &mut WrittenPlan,
        change: impl FnOnce(&mut message::Model),
    ) -> Result<(), DbErr> {
        let Some(target) = schedule.facts.target() else {
            return Ok(());
        };
        let (mut row, n_swipes) = (target.row.clone(), target.n_swipes);
        let was_hidden = row.visibility == message::Visibility::Hidden;
        let was_ooc = row.is_ooc;
        let (was_usable_by_memory, was_remembered) = (row.is_usable_by_memory(), row.is_remembered);
        let version = row.version;
        let shown = (row.content.clone(), row.active_swipe);
        change(&mut row);
        schedule.conversation.text_bytes += n_bytes(row.content.len()) - n_bytes(shown.0.len());
        if shown != (row.content.clone(), row.active_swipe) {
            row.version += 1;
        }
        row.rev = next_rev(schedule);
        let active = row.clone().into_active_model().reset_all();
        message::Entity::update(active).exec(self.tx).await?;
        let is_hidden = row.visibility == message::Visibility::Hidden;
        if was_hidden != is_hidden {
            self.hide_attachments(&row).await?;
        }
        if row.version > version || is_hidden {
            message_translation::delete_for(self.tx, [row.id]).await?;
        }
        if was_hidden != is_hidden || was_ooc != row.is_ooc {
            self.refresh_newest(schedule).await?;
        }
        if let Some(change) = memory_change(was_usable_by_memory, &row, row.version > version) {
            let remade = self.update_memory(schedule, written, &row, change).await?;
            let is_switched_on = row.is_usable_by_memory() && (!was_remembered || was_ooc);
            let is_learned = change == MessageChange::TextChanged || is_switched_on;
            let own = is_learned.then_some((row.seq, row.seq));
            if let Some(seqs) = union(own, remade) {
                self.learn_again(schedule, seqs).await?;
            }
        }
        if let Some(target) = schedule.facts.target_mut() {
            target.row = row.clone();
        }
        written.messages.push(WrittenMessage {
            row,
            is_new: was_hidden,
            n_swipes,
        });
        Ok(())
    }

    /// Records when the pictures of a message were hidden with it, or that it was restored.
    async fn hide_attachments(&self, row: &message::Model) -> Result<(), DbErr> {
        if !row.has_attachments {
            return Ok(());
        }
        let is_hidden = row.visibility == message::Visibility::Hidden;
        attachment::set_hidden(self.tx, row.id, is_hidden.then_some(self.now)).await
    }

    /// Recomputes the newest message of each role, because one was hidden, restored or marked.
    async fn refresh_newest(&self, schedule: &mut ScheduleState) -> Result<(), DbErr> {
        let newest = newest_messages::find(self.tx, schedule.conversation.id).await?;
        newest.apply_to(&mut schedule.conversation);
        schedule.last_speaker = newest.last_speaker;
        Ok(())
    }
}

/// Makes an appended message the newest one of the conversation and of its role.
fn set_newest(schedule: &mut ScheduleState, row: &message::Model) {
    match row.role {
        message::MessageRole::Assistant => {
            schedule.last_speaker = Some(row.space_membership_id);
            schedule.conversation.last_speaker_membership_id = schedule.last_speaker;
            schedule.conversation.last_assistant_seq = Some(row.seq);
        }
        message::MessageRole::User => schedule.conversation.last_user_seq = Some(row.seq),
        message::MessageRole::System => {}
    }
    schedule.tail = Some(row.clone());
}

/// Returns what a changed message means for the memories that were made from it.
fn memory_change(
    was_usable_by_memory: bool,
    row: &message::Model,
    is_text_changed: bool,
) -> Option<MessageChange> {
    match (was_usable_by_memory, row.is_usable_by_memory()) {
        // Also of an excluded message: its old text must not come back with it.
        _ if is_text_changed => Some(MessageChange::TextChanged),
        (true, false) => Some(MessageChange::Hidden),
        (false, true) => Some(MessageChange::Restored),
        _ => None,
    }
}

/// Converts a length to the type of the database.
fn n_bytes(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
