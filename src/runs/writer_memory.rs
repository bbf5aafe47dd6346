//! Writes what a turn leaves behind beside its text: what was sent, and what is remembered.

use crate::clock::Timestamp;
use crate::conversations::conversation;
use crate::db::connect::Db;
use crate::ids::ConversationId;
use crate::ids::RunId;
use crate::prompt::builder::Memory;
use crate::prompt::record::Record;
use crate::prompt::run_prompt;
use crate::prompt::space_variable;
use crate::runs::command::Sent;
use crate::runs::queue;
use crate::runs::situation::Situation;
use crate::runs::writer::Writer;
use sea_orm::DbErr;
use serde_json::Value;
use serde_json::json;

/// What a run sent that somebody else has ended.
pub struct Late {
    pub run: RunId,
    pub conversation: ConversationId,
    /// The number under which it was executed.
    pub lease: i64,
    pub sent: Sent,
    pub now: Timestamp,
}

/// Keeps what a canceled run sent. Nothing is kept of one that goes on elsewhere, that is known
/// already, or that went with its conversation.
///
/// # Errors
/// When the database fails.
pub async fn keep_late(db: &Db, late: Late) -> Result<(), DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            // Its conversation may be deleted at this very moment.
            if conversation::lock(tx, late.conversation).await?.is_none() {
                return Ok(());
            }
            let figures = &late.sent.figures;
            if queue::note_late(tx, late.run, late.lease, figures).await? {
                let record = late.sent.record.as_ref().clone();
                run_prompt::keep(tx, late.run, late.conversation, record, late.now).await?;
            }
            Ok(())
        })
    })
    .await
}

impl Writer<'_> {
    /// Keeps what a run sent.
    pub(super) async fn keep(
        &self,
        s: &Situation,
        run: RunId,
        record: &Record,
    ) -> Result<(), DbErr> {
        let conversation = s.conversation.id;
        run_prompt::keep(self.tx, run, conversation, record.clone(), self.now).await
    }

    /// Remembers what macros have set and how the lore stands. The row is locked: what it says is
    /// what the turn before left.
    pub(super) async fn remember(&self, s: &mut Situation, memory: &Memory) -> Result<(), DbErr> {
        let mut variables = s.conversation.variables.clone();
        for (name, value) in &memory.macros.conversation {
            if !variables["macros"].is_object() {
                variables["macros"] = json!({});
            }
            variables["macros"][name] = Value::from(value.as_str());
        }
        if let Some(lore) = &memory.lore {
            variables["lore"] = lore.clone();
        }
        if variables != s.conversation.variables {
            conversation::set_variables(self.tx, s.conversation.id, variables.clone()).await?;
            s.conversation.variables = variables;
        }
        space_variable::set(self.tx, s.space.id, memory.macros.space.clone()).await
    }
}
