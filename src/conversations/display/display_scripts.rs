//! Renders messages as HTML, after the regex scripts that change what is shown. The sanitizer of the
//! Markdown renderer reads what scripts have written like any other text.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::ids::{ConversationId, MembershipId, SpaceId};
use sea_orm::{ConnectionTrait, DbErr, EntityTrait, QuerySelect};
use sha2::{Digest, Sha256};
use tavern::regex_scripts::script_error::ScriptError;
use tavern::regex_scripts::script_names::ScriptNames;
use tavern::regex_scripts::script_runner::{MAX_RUNNER_STEPS, ScriptRunner};
use tavern::regex_scripts::script_use::{ScriptPlacement, ScriptPurpose, ScriptUse};

use crate::conversations::conversation;
use crate::conversations::display::markdown::Markdown;
use crate::conversations::message::{MessageRole, Model};
use crate::regex_scripts::script_cache::{ScriptCache, ScriptRevisions};
use crate::regex_scripts::space_scripts::SpaceScripts;
use crate::regex_scripts::speaker_scripts::SpeakerScripts;

/// The scripts for messages of one conversation. Clones share their budget.
#[derive(Clone, Debug, Default)]
pub struct DisplayScripts(Option<Arc<PageScripts>>);

#[derive(Debug)]
struct PageScripts {
    scripts: Arc<SpaceScripts>,
    /// The `seq` of the newest message.
    last_seq: i64,
    steps_left: AtomicU64,
}

/// A text that is shown, with its author.
#[derive(Clone, Copy, Debug)]
pub struct ShownText<'a> {
    pub author: MembershipId,
    pub author_name: &'a str,
    pub role: MessageRole,
    pub seq: i64,
    pub content: &'a str,
}

impl<'a> ShownText<'a> {
    /// Returns the text of a message.
    pub fn of_message(row: &'a Model, author_name: &'a str) -> Self {
        Self {
            author: row.space_membership_id,
            author_name: row.persona_name.as_deref().unwrap_or(author_name),
            role: row.role,
            seq: row.seq,
            content: &row.content,
        }
    }
}

impl DisplayScripts {
    /// Loads the scripts for messages of a conversation. Runs no query in a space that never had any.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn load(
        db: &impl ConnectionTrait,
        cache: &ScriptCache,
        (space, revisions): (SpaceId, ScriptRevisions),
        conversation: ConversationId,
    ) -> Result<Self, DbErr> {
        let Some(scripts) = cache.load(db, space, revisions).await? else {
            return Ok(Self::default());
        };
        let last_seq: Option<i64> = conversation::Entity::find_by_id(conversation)
            .select_only()
            .column(conversation::Column::LastSeq)
            .into_tuple()
            .one(db)
            .await?;
        Ok(Self::new(scripts, last_seq.unwrap_or_default()))
    }

    /// Creates the scripts for messages of a conversation whose newest message has this `seq`.
    pub fn new(scripts: Arc<SpaceScripts>, last_seq: i64) -> Self {
        Self(Some(Arc::new(PageScripts {
            scripts,
            last_seq,
            steps_left: AtomicU64::new(MAX_RUNNER_STEPS),
        })))
    }

    /// Returns whether there are no scripts.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns a text as safe HTML. A script that fails leaves the text as it was.
    pub fn render(&self, markdown: &Markdown, shown: ShownText<'_>) -> Arc<str> {
        let Some(page) = &self.0 else {
            return markdown.render(shown.content);
        };
        page.render(markdown, shown)
    }
}

impl PageScripts {
    fn render(&self, markdown: &Markdown, shown: ShownText<'_>) -> Arc<str> {
        let of_role = match shown.role {
            MessageRole::User => Some((&self.scripts.people, ScriptPlacement::UserInput)),
            MessageRole::Assistant => {
                let own = self.scripts.of_member(shown.author);
                own.map(|it| (it, ScriptPlacement::AiOutput))
            }
            MessageRole::System => None,
        };
        let Some((scripts, placement)) = of_role else {
            return markdown.render(shown.content);
        };
        let of_text = ScriptUse {
            placement,
            purpose: ScriptPurpose::Display,
            depth: Some(self.last_seq - shown.seq),
        };
        let user = match shown.role {
            MessageRole::User => shown.author_name,
            _ => &self.scripts.user,
        };
        // No message contains NUL, so that no text has the same key.
        let mut key = Sha256::new_with_prefix("scripts\0");
        let mut n_active = 0;
        for (_, it) in scripts.active(of_text) {
            key.update(it.fingerprint);
            n_active += 1;
        }
        if n_active == 0 {
            return markdown.render(shown.content);
        }
        key.update(Sha256::digest(user));
        key.update(shown.content);
        markdown.render_made(key.finalize().into(), shown.content, || {
            self.changed_text(scripts, of_text, user, shown.content)
        })
    }

    /// Returns the text after the scripts, or `None` if it was not changed because the page has used up
    /// its steps.
    fn changed_text(
        &self,
        scripts: &SpeakerScripts,
        of_text: ScriptUse,
        user: &str,
        content: &str,
    ) -> Option<String> {
        let left = self.steps_left.load(Ordering::Relaxed);
        let mut runner = ScriptRunner::with_steps(left);
        let done = scripts.apply(&mut runner, of_text, content, &|it, text| {
            let character = &it.character;
            ScriptNames { character, user }.expand(text)
        });
        self.steps_left
            .store(runner.steps_left(), Ordering::Relaxed);
        let mut failures = done.failures.iter();
        let is_cut = failures.any(|(_, it)| *it == ScriptError::AllTooManySteps);
        (!is_cut).then(|| done.text.unwrap_or_else(|| content.to_owned()))
    }
}
