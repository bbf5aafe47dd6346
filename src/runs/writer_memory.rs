//! Writes what a turn leaves behind beside its text: what was sent, and what is remembered.

use crate::conversations::conversation;
use crate::ids::RunId;
use crate::prompt::builder::Memory;
use crate::prompt::record::Record;
use crate::prompt::run_prompt;
use crate::prompt::space_variable;
use crate::runs::situation::Situation;
use crate::runs::writer::Writer;
use sea_orm::DbErr;
use serde_json::Value;
use serde_json::json;

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
