//! Chooses the speakers of a response whose model is a character or a space, and prepares their
//! model calls in order; each prompt contains the texts of the earlier speakers. Also charges the
//! used tokens to the space.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use agent::tools::tool::ServerTool;
use base::ids::MembershipId;
use base::prompt_role::PromptRole;
use llm::request::Message;
use responses_api::response::ResponseUsage;
use sea_orm::DbErr;
use serde_json::{Value, json};
use tavern::seeded_random::SeededRandom;

use crate::characters::character;
use crate::memories::memory_settings::MemberSwitches;
use crate::memories::tool::memory_tool::MemoryTool;
use crate::prompt::loading::external_history;
use crate::providers::{provider, usable_providers};
use crate::responses::error::ResponseEngineError;
use crate::responses::execution::speaker_call::SpeakerCall;
use crate::responses::input::prompt;
use crate::responses::input::prompt_assembler::PromptItem;
use crate::responses::model_provider;
use crate::responses::persona_models::model_names::PersonaModel;
use crate::responses::persona_models::speaker_selection::SpaceRequest;
use crate::responses::persona_models::{model_names, speaker_prompt, speaker_selection};
use crate::responses::request::StoredRequest;
use crate::responses::services::ResponseServices;
use crate::spaces::posts::heard_messages;
use crate::spaces::{membership, space};
use crate::speakers::from_memberships;
use crate::speakers::selection::{Candidate, SpeakerChoice};

/// The speakers of one response.
#[derive(Clone)]
pub struct SpeakerQueue {
    services: ResponseServices,
    persona_model: PersonaModel,
    request: StoredRequest,
    /// All messages so far, including those of this response.
    prompt_items: Vec<PromptItem>,
    /// Whether a text at the end of the input is continued.
    continues_text: bool,
    remaining: VecDeque<SpeakerChoice>,
}

impl SpeakerQueue {
    /// Chooses the speakers that answer these items.
    ///
    /// # Errors
    /// Returns `NoSpeaker` when no character can speak, and `Database` when a query fails.
    pub async fn load(
        services: &ResponseServices,
        persona_model: PersonaModel,
        request: &StoredRequest,
        prior: &[Value],
        input: &[Value],
    ) -> Result<Self, ResponseEngineError> {
        let mut remaining: VecDeque<SpeakerChoice> = match &persona_model {
            PersonaModel::Character { .. } => [SpeakerChoice::new(
                external_history::CHARACTER_MEMBERSHIP,
                "asked for",
            )]
            .into(),
            PersonaModel::Space {
                space,
                memberships,
                membership,
            } => {
                let asked = SpaceRequest {
                    space,
                    memberships,
                    candidates: load_candidates(services, memberships).await?,
                    requester_id: membership.id,
                };
                let items: Vec<&Value> = prior.iter().chain(input).collect();
                let mut dice = SeededRandom::from_seed(rand::random());
                speaker_selection::choose(&asked, &items, &mut dice).into()
            }
        };
        if request.has_one_speaker {
            remaining.truncate(1);
        }
        match remaining.is_empty() {
            true => Err(ResponseEngineError::NoSpeaker),
            false => Ok(Self {
                services: services.clone(),
                persona_model,
                request: request.clone(),
                prompt_items: prompt::assemble(None, prior, input),
                continues_text: request.continues_text && !input.is_empty(),
                remaining,
            }),
        }
    }

    /// Returns the call of the next speaker, or `None` if all have spoken.
    ///
    /// # Errors
    /// Returns `ModelUnavailable` when it has no usable provider, and the errors of
    /// [`speaker_prompt::build_request`].
    pub async fn next(&mut self) -> Result<Option<SpeakerCall>, ResponseEngineError> {
        let Some(choice) = self.remaining.pop_front() else {
            return Ok(None);
        };
        let mut row = self
            .load_provider_row(choice.id)
            .await?
            .ok_or(ResponseEngineError::ModelUnavailable)?;
        let (parts, kept) = (&self.services, &self.request);
        let provider = model_provider::load_provider(parts, &row, kept)?;
        if kept.max_prompt_tokens.is_some() {
            row.settings["context_tokens"] = json!(model_provider::context_window(&row, kept));
        }
        let building = speaker_prompt::build_request(
            parts,
            &self.persona_model,
            choice.id,
            &self.prompt_items,
            kept,
            &row,
            self.continues_text.then_some(provider.as_ref()),
        );
        let (request, trim) = building.await?;
        model_provider::require_readable_attachments(provider.as_ref(), &request)?;
        Ok(Some(SpeakerCall {
            provider,
            provider_name: row.name,
            request,
            calls: parts.provider_queues.calls_of(row.id),
            trim,
            speaker_metadata: Some(self.speaker_metadata(&choice)),
            memory: self.memory(choice.id),
        }))
    }

    /// Returns the memory tool of a speaker, if the request declares it. A response does not change
    /// the space, so the tool can only search.
    fn memory(&self, speaker: MembershipId) -> Option<Arc<dyn ServerTool>> {
        let PersonaModel::Space {
            space, memberships, ..
        } = &self.persona_model
        else {
            return None;
        };
        if !self.request.tools.declares_memory() {
            return None;
        }
        Some(Arc::new(MemoryTool {
            db: self.services.db.clone(),
            indexes: self.services.prompt_caches.memories.clone(),
            space: (**space).clone(),
            speaker,
            switches: MemberSwitches::of(memberships, speaker),
            heard_since: heard_messages::heard_since(memberships, speaker),
            lineage: BTreeMap::new(),
            members: Vec::new(),
            changes: None,
        }))
    }

    /// Records the text of a speaker for the prompts of the next ones.
    pub fn record_text(&mut self, speaker: &str, text: &str) {
        if !text.trim().is_empty() {
            self.prompt_items.push(PromptItem {
                message: Message::new(PromptRole::Assistant, text).with_name(speaker),
                is_droppable: false,
            });
        }
    }

    /// Charges the tokens to the space. A failure is only logged, because the text was already
    /// sent.
    pub async fn charge_tokens(&self, usage: ResponseUsage) {
        let PersonaModel::Space { space, .. } = &self.persona_model else {
            return;
        };
        let (id, n_tokens) = (
            space.id,
            usage.input_tokens.saturating_add(usage.output_tokens),
        );
        let charging = self.services.db.write(move |tx| {
            Box::pin(async move { space::add_unattributed_tokens(tx, id, n_tokens).await })
        });
        let charged: Result<(), DbErr> = charging.await;
        if let Err(error) = charged {
            tracing::warn!(space.id = %id, %error, "failed to charge {n_tokens} tokens to space {id}: {error}");
        }
    }

    async fn load_provider_row(
        &self,
        speaker: MembershipId,
    ) -> Result<Option<provider::Model>, DbErr> {
        let membership = self.membership(speaker);
        let own = membership.and_then(|it| it.llm_provider_id);
        let model = membership.and_then(membership::Model::model_override);
        usable_providers::find(self.services.db.reader(), own, model).await
    }

    fn membership(&self, id: MembershipId) -> Option<&membership::Model> {
        match &self.persona_model {
            PersonaModel::Character { .. } => None,
            PersonaModel::Space { memberships, .. } => memberships.iter().find(|it| it.id == id),
        }
    }

    fn speaker_metadata(&self, choice: &SpeakerChoice) -> Value {
        match (&self.persona_model, self.membership(choice.id)) {
            (PersonaModel::Space { .. }, Some(membership)) => {
                speaker_selection::speaker_metadata(membership, &choice.reason)
            }
            (PersonaModel::Space { .. }, None) => Value::Null,
            (PersonaModel::Character { row, .. }, _) => json!({
                "speaker": row.name,
                "speaker_id": model_names::format(row.id),
                "chosen_because": choice.reason,
            }),
        }
    }
}

async fn load_candidates(
    services: &ResponseServices,
    memberships: &[membership::Model],
) -> Result<Vec<Candidate>, DbErr> {
    let cards = memberships.iter().filter_map(|it| it.character_id);
    let of_cards = character::load_talkativeness(services.db.reader(), cards).await?;
    Ok(from_memberships::candidates(memberships, &of_cards))
}
