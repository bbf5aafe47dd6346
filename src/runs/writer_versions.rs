//! Writes what a plan changes of a message's texts, and of a turn that is answered again.

use crate::conversations::message;
use crate::conversations::swipe;
use crate::runs::command::Edit;
use crate::runs::situation::Situation;
use crate::runs::writer::Told;
use crate::runs::writer::Writer;
use crate::runs::writer::Written;
use crate::runs::writer::next_rev;
use sea_orm::ActiveModelTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::IntoActiveModel;

/// A length as the database counts it.
pub(super) fn bytes(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

impl Writer<'_> {
    /// Deletes what followed the message that is answered again.
    pub(super) async fn hide_turn(
        &self,
        s: &mut Situation,
        written: &mut Written,
        turn: Vec<message::Model>,
    ) -> Result<(), DbErr> {
        for mut row in turn {
            row.visibility = message::Visibility::Hidden;
            row.rev = next_rev(s);
            let active = row.clone().into_active_model().reset_all();
            message::Entity::update(active).exec(self.tx).await?;
            written.messages.push(Told {
                row,
                is_new: false,
                n_swipes: 0,
            });
        }
        s.tail = s.answered.clone();
        self.find_newest(s).await
    }

    /// Replaces the shown text by a person's.
    pub(super) async fn set_content(
        &self,
        s: &mut Situation,
        written: &mut Written,
        edit: Edit,
    ) -> Result<(), DbErr> {
        let now = self.now;
        let change = |it: &mut message::Model| {
            it.content = edit.content;
            it.token_count = edit.token_count;
            it.edited_at = Some(now);
            it.edited_by = edit.by;
        };
        let before = s.conversation.text_bytes;
        self.change_subject(s, written, change).await?;
        match s.subject.as_ref().filter(|_| s.subject_n_swipes > 0) {
            Some(row) => {
                // The text is stored a second time, as one of several.
                s.conversation.text_bytes += s.conversation.text_bytes - before;
                swipe::update_active(self.tx, row).await
            }
            None => Ok(()),
        }
    }

    /// Adds a text and shows it. A message that had one text alone keeps that as the first.
    pub(super) async fn add_swipe(
        &self,
        s: &mut Situation,
        written: &mut Written,
        text: swipe::SwipeText,
    ) -> Result<(), DbErr> {
        let Some(row) = s.subject.as_ref() else {
            return Ok(());
        };
        let first = (s.subject_n_swipes == 0).then(|| swipe::SwipeText::from_message(row));
        let texts: Vec<swipe::SwipeText> = first.into_iter().chain([text.clone()]).collect();
        let stored: usize = texts.iter().map(|it| it.content.len()).sum();
        s.conversation.text_bytes += bytes(stored);
        s.subject_n_swipes += swipe::append_all(self.tx, row.id, s.subject_n_swipes, texts).await?;
        let position = s.subject_n_swipes - 1;
        self.change_subject(s, written, |it| text.select_on(it, position))
            .await
    }

    /// Shows one of the texts there are.
    pub(super) async fn show_swipe(
        &self,
        s: &mut Situation,
        written: &mut Written,
        swipe: swipe::Model,
    ) -> Result<(), DbErr> {
        let position = swipe.position;
        let text = swipe::SwipeText::from(swipe);
        self.change_subject(s, written, |it| text.select_on(it, position))
            .await
    }
}
