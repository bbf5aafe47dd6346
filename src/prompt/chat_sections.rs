//! Builds the blocks that the preset adds to the messages of a prompt: the line before them, nudges and
//! instructions after them, and the beginning of the reply.

use base::prompt_role::PromptRole;

use crate::prompt::blocks::{BlockKind, PromptBlock};
use crate::prompt::prefill;
use crate::prompt::sections::Sections;

impl Sections<'_> {
    /// Returns the text with which the preset replaces an empty message of the user.
    pub fn empty_message(&self) -> Option<PromptBlock> {
        self.environment.set_field("Empty message");
        let text = self.expand_text(&self.context.preset.texts.replace_empty_message);
        let block = self.system_block(BlockKind::Entry, "Empty message", text)?;
        Some(PromptBlock {
            role: PromptRole::User,
            ..block
        })
    }

    /// Returns the beginning of the reply that the preset sets, if the provider accepts one.
    pub fn prefill(&self) -> Option<PromptBlock> {
        let template = Some(prefill::template(self.context));
        let template = template.filter(|_| self.context.accepts_prefill)?;
        self.environment.set_field("Prefill");
        let text = self.expand_text(template);
        let block = self.system_block(BlockKind::Prefill, "Prefill", text)?;
        Some(PromptBlock {
            role: PromptRole::Assistant,
            ..block
        })
    }

    /// Returns the line that marks the start of the chat.
    pub fn new_chat(&self) -> Option<PromptBlock> {
        let texts = &self.context.preset.texts;
        let line = match self.context.is_group() {
            true => &texts.new_group_chat_prompt,
            false => &texts.new_chat_prompt,
        };
        self.environment.set_field("New chat");
        let line = self.expand_text(line);
        self.system_block(BlockKind::NewChat, "New chat", line)
    }

    /// Returns the group nudge; only for a character of a group.
    pub fn group_nudge(&self) -> Option<PromptBlock> {
        let needs_one = self.context.is_group() && !self.context.is_impersonation();
        let nudge = &self.context.preset.texts.group_nudge_prompt;
        self.environment.set_field("Group nudge");
        let nudge = needs_one.then(|| self.expand_text(nudge))?;
        self.system_block(BlockKind::GroupNudge, "Group nudge", nudge)
    }

    /// Returns the instruction to continue the newest message, if the prompt does not end with it, and
    /// the user's request, in which macros are not expanded.
    pub fn continue_nudge(&self) -> Option<PromptBlock> {
        let continuation = self.context.continuation?;
        let nudge = &self.context.preset.texts.continue_nudge_prompt;
        self.environment.set_field("Continue nudge");
        let mut text = match continuation.is_prefill {
            true => String::new(),
            false => self.expand_text(nudge),
        };
        if let Some(instruction) = &self.context.continue_request {
            let user = &self.cards.bindings.user;
            text += &format!("\n[{user} asks for this: {instruction}]");
        }
        let text = text.trim().to_owned();
        self.system_block(BlockKind::ContinueNudge, "Continue nudge", text)
    }

    /// Returns the instruction to write for a user, with their request. Macros in the request are
    /// not expanded.
    pub fn impersonation(&self) -> Option<PromptBlock> {
        if !self.context.is_impersonation() {
            return None;
        }
        self.environment.set_field("Impersonation");
        let mut text = self.expand_text(&self.context.preset.texts.impersonation_prompt);
        if let Some(instruction) = &self.context.impersonation_request {
            let user = &self.cards.bindings.user;
            text += &format!("\n[{user} asks for this: {instruction}]");
        }
        self.system_block(
            BlockKind::Impersonation,
            "Impersonation",
            text.trim().to_owned(),
        )
    }
}
