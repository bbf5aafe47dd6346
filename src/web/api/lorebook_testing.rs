//! The endpoint that tests a lorebook with a text, alone or together with all lorebooks of a conversation.

use actix_web::web::{Data, Json, Path};
use base::ids::{ConversationId, LorebookEntryId, LorebookId, MembershipId};
use base::prompt_role::PromptRole;
use llm::tokens;
use serde::{Deserialize, Serialize};
use tavern::import_warning;
use tavern::import_warning::ImportWarning;
use tavern::lorebook::engine_lorebook::{InsertionPosition, Lorebook, LorebookSource};
use tavern::lorebook::scan_result::{ActivatedEntry, EntryRef};
use tavern::macros::card_use::CardUse;
use utoipa::ToSchema;

use crate::app::App;
use crate::lorebooks::{active_lorebooks, lorebook_entry};
use crate::prompt::lore_tester::lore_test;
use crate::prompt::lore_tester::lore_test::{TestMessage, TestedLore};
use crate::runs::reading::prompt_preview;
use crate::runs::reading::prompt_preview::LoreTest;
use crate::spaces::permissions::Action;
use crate::web::api::{lorebooks, prompts};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::space_access;

/// The maximum length of a text in bytes, the same as for a message.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// A text to test a lorebook with.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LoreTrial)]
pub struct LorebookTestRequest {
    /// Scanned as the newest message.
    #[schema(max_length = 65_536)]
    text: String,
    /// The conversation whose next prompt is tested: with its settings and messages, and with all lorebooks
    /// that take part. Without one, only this lorebook is scanned, with the default settings.
    conversation_id: Option<ConversationId>,
    /// The member that speaks; the likely next speaker if it is missing.
    speaker_id: Option<MembershipId>,
}

/// The result of testing a lorebook.
#[derive(Serialize, ToSchema)]
#[schema(as = LoreTried)]
pub struct LorebookTestResult {
    /// In the order of their texts in the prompt; entries that only a macro inserts are last. In a
    /// conversation, includes the entries of its other lorebooks.
    pub fired: Vec<TestedActiveEntry>,
    /// Only entries of this lorebook.
    pub not_fired: Vec<TestedEntry>,
    /// Problems of the lorebooks, as sentences.
    pub warnings: Vec<String>,
    /// The same warnings, in the same order, as codes.
    pub warnings_coded: Vec<ImportWarning>,
}

/// The result for one entry.
#[derive(Serialize, ToSchema)]
#[schema(as = LoreJudged)]
pub struct TestedEntry {
    /// Null for an entry of a lorebook embedded in a card.
    pub entry_id: Option<LorebookEntryId>,
    pub name: String,
    /// The reason, with its detail after a colon: `key: dragon`, `dice: 50`, `constant`.
    pub because: String,
}

/// An activated entry. `name`, `because` and `book` are empty if it belongs to a card that the caller may not
/// read.
#[derive(Serialize, ToSchema)]
#[schema(as = LoreActivated)]
pub struct TestedActiveEntry {
    #[serde(flatten)]
    pub entry: TestedEntry,
    /// Null for a lorebook embedded in a card.
    pub lorebook_id: Option<LorebookId>,
    /// The name of the lorebook.
    pub book: String,
    pub position: TestedPosition,
    /// At one position, the text of an entry with a higher order is nearer to the end of the prompt.
    pub order: i64,
}

/// The position of the text of an entry in the prompt.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = LorePosition)]
pub enum TestedPosition {
    BeforeChar,
    AfterChar,
    /// After the personality of the character.
    Personality,
    /// After the scenario.
    Scenario,
    BeforeExamples,
    AfterExamples,
    /// Above the author's note.
    NoteTop,
    /// Below the author's note.
    NoteBottom,
    AtDepth {
        /// The number of messages after it.
        depth: usize,
        role: PromptRole,
    },
    /// Only where `{{outlet::name}}` inserts it.
    Outlet {
        name: String,
    },
}

impl From<InsertionPosition> for TestedPosition {
    fn from(position: InsertionPosition) -> Self {
        match position {
            InsertionPosition::BeforeCharacter => Self::BeforeChar,
            InsertionPosition::AfterCharacter => Self::AfterChar,
            InsertionPosition::Personality => Self::Personality,
            InsertionPosition::Scenario => Self::Scenario,
            InsertionPosition::BeforeExamples => Self::BeforeExamples,
            InsertionPosition::AfterExamples => Self::AfterExamples,
            InsertionPosition::NoteTop => Self::NoteTop,
            InsertionPosition::NoteBottom => Self::NoteBottom,
            InsertionPosition::AtDepth { depth, role } => Self::AtDepth { depth, role },
            InsertionPosition::Outlet(name) => Self::Outlet { name },
        }
    }
}

/// Tests a lorebook with a text: which entries are activated, where their texts are in the prompt, and why the
/// others are not activated. Nothing is stored.
///
/// In a conversation this requires the permission to see its prompts.
#[utoipa::path(
    post,
    path = "/api/lorebooks/{lorebook_id}/test",
    tag = "lorebooks",
    request_body = LorebookTestRequest,
    responses(
        (status = 200, body = LorebookTestResult),
        (status = 403),
        (status = 422, description = "`too_long`; `invalid_value`; `no_speaker`; `context_overflow`; `invalid_macro`.")
    )
)]
pub async fn test(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<LorebookId>,
    body: JsonBody<LorebookTestRequest>,
) -> ApiResult<Json<LorebookTestResult>> {
    let found = lorebooks::require_own(&app, &caller, id.into_inner()).await?;
    let body = body.read().await?;
    if body.text.len() > MAX_TEXT_BYTES {
        return Err(ApiError::new(422, "too_long", "Must not exceed 64 KiB.").with_param("text"));
    }
    let rows = lorebook_entry::list_for_lorebook(app.db.reader(), found.id).await?;
    let entries = rows.iter().map(active_lorebooks::to_entry).collect();
    let book = active_lorebooks::to_lorebook(&found, LorebookSource::Space, entries);
    let tested = match (body.conversation_id, body.speaker_id) {
        (Some(conversation), speaker) => {
            test_in_conversation(&app, &caller, (conversation, speaker), book, body.text).await?
        }
        (None, None) => {
            let work = move || LorebookTestResult::new(lore_test::test_alone(book, &body.text));
            let tested = app.shutdown.main().spawn_blocking(work).await;
            tested.map_err(ApiError::internal)?
        }
        (None, Some(_)) => {
            let message = "Requires a conversation.";
            return Err(ApiError::invalid_value("speaker_id", message));
        }
    };
    Ok(Json(tested))
}

/// Tests a lorebook in a conversation, where it also takes part if it is not linked.
async fn test_in_conversation(
    app: &App,
    caller: &CurrentUser,
    (conversation, speaker): (ConversationId, Option<MembershipId>),
    book: Lorebook,
    text: String,
) -> ApiResult<LorebookTestResult> {
    let at = space_access::load_conversation_access(app, caller, conversation).await?;
    at.require_action(Action::ManageConversation)?;
    let speaker = prompts::find_speaker(app, &at, speaker).await?;
    let id = book.id;
    let message = TestMessage {
        author: at.membership.as_ref().map(|it| it.id),
        name: at.display_name(caller),
        text,
    };
    let services = app.engine.context();
    let speaking = (speaker, at.viewer());
    let test = LoreTest {
        book,
        message,
        settings: &at.space.settings,
    };
    let context = prompt_preview::load_lore_test(services, conversation, speaking, test);
    let context = context.await?.ok_or_else(prompts::no_speaker)?;
    let work = move || lore_test::test_in_prompt(&context, &tokens::count);
    let tested = services.shutdown.main().spawn_blocking(work).await;
    let tested = tested.map_err(ApiError::internal)?;
    let mut tested = tested.map_err(|error| ApiError::new(422, error.code(), error.to_string()))?;
    // The names and keys of other lorebooks are shown only for entries that are in the prompt.
    tested.skipped.retain(|it| it.entry.lorebook_id == id);
    let hidden = prompts::hidden_cards(app, caller, at.space.id).await?;
    let is_hidden = hidden.hides(CardUse::Entered, Some(&tested.cards));
    let mut result = LorebookTestResult::new(tested);
    if is_hidden {
        result.withhold();
    }
    Ok(result)
}

impl LorebookTestResult {
    fn new(tested: TestedLore) -> Self {
        let fired = tested.activated.into_iter();
        let not_fired = tested.skipped.iter();
        Self {
            fired: fired.map(TestedActiveEntry::from).collect(),
            not_fired: not_fired
                .map(|it| TestedEntry::new(&it.entry, &it.reason))
                .collect(),
            warnings: import_warning::sentences(&tested.warnings),
            warnings_coded: tested.warnings,
        }
    }

    /// Removes the texts that come from cards.
    fn withhold(&mut self) {
        // An entry without an id belongs to a card's embedded lorebook.
        let of_cards = self.fired.iter_mut();
        for it in of_cards.filter(|it| it.entry.entry_id.is_none()) {
            it.entry.name.clear();
            it.entry.because.clear();
            it.book.clear();
            if let TestedPosition::Outlet { name } = &mut it.position {
                name.clear();
            }
        }
        // Warnings name entries and keys.
        self.warnings.clear();
        self.warnings_coded.clear();
    }
}

impl TestedEntry {
    fn new(entry: &EntryRef, because: &impl ToString) -> Self {
        Self {
            entry_id: entry.entry_id,
            name: entry.name.clone(),
            because: because.to_string(),
        }
    }
}

impl From<ActivatedEntry> for TestedActiveEntry {
    fn from(activated: ActivatedEntry) -> Self {
        Self {
            entry: TestedEntry::new(&activated.entry, &activated.reason),
            lorebook_id: activated.entry.lorebook_id,
            book: activated.entry.lorebook,
            position: activated.position.into(),
            order: activated.order,
        }
    }
}
