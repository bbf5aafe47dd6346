//! Those who speak in one turn that a character or a space answers, one after the other: each is told
//! what those before it have said.

use crate::characters::character;
use crate::ids::MembershipId;
use crate::llm::request::Message;
use crate::llm::request::PromptRole;
use crate::prompt::external_history;
use crate::providers::provider;
use crate::responses::document::Bill;
use crate::responses::parts::Parts;
use crate::responses::preparation;
use crate::responses::prompt;
use crate::responses::prompt::Entry;
use crate::responses::refusal::Refusal;
use crate::responses::speakers_of;
use crate::responses::speakers_of::Asked;
use crate::responses::spec::Kept;
use crate::responses::speech::Call;
use crate::responses::voice;
use crate::responses::voice::Voice;
use crate::responses::voice_prompt;
use crate::spaces::membership;
use crate::spaces::space;
use crate::speakers::from_memberships;
use crate::speakers::seeded_random::SeededRandom;
use crate::speakers::selection::Candidate;
use crate::speakers::selection::SpeakerChoice;
use sea_orm::DbErr;
use serde_json::Value;
use serde_json::json;
use std::collections::VecDeque;

/// Whoever speaks in a turn.
pub struct Cast {
    parts: Parts,
    voice: Voice,
    kept: Kept,
    /// What has been said, also in this turn.
    said: Vec<Entry>,
    waiting: VecDeque<SpeakerChoice>,
}

impl Cast {
    /// Chooses who speaks after these items.
    ///
    /// # Errors
    /// Nobody can, or the database fails.
    pub async fn assemble(
        parts: &Parts,
        voice: Voice,
        kept: &Kept,
        prior: &[Value],
        input: &[Value],
    ) -> Result<Self, Refusal> {
        let waiting: VecDeque<SpeakerChoice> = match &voice {
            Voice::Character { .. } => [SpeakerChoice::new(
                external_history::CHARACTER_MEMBERSHIP,
                "asked for",
            )]
            .into(),
            Voice::Space { space, seats, seat } => {
                let asked = Asked {
                    space,
                    seats,
                    candidates: candidates(parts, seats).await?,
                    user: seat.id,
                };
                let items: Vec<&Value> = prior.iter().chain(input).collect();
                let mut dice = SeededRandom::from_seed(rand::random());
                speakers_of::choose(&asked, &items, &mut dice).into()
            }
        };
        match waiting.is_empty() {
            true => Err(Refusal::NoSpeaker),
            false => Ok(Self {
                parts: parts.clone(),
                voice,
                kept: kept.clone(),
                said: prompt::entries(None, prior, input),
                waiting,
            }),
        }
    }

    /// The next one; `None`: all have spoken.
    ///
    /// # Errors
    /// It cannot be asked.
    pub async fn next(&mut self) -> Result<Option<Call>, Refusal> {
        let Some(choice) = self.waiting.pop_front() else {
            return Ok(None);
        };
        let row = self.model_of(choice.id).await?.ok_or(Refusal::Unusable)?;
        let (parts, kept) = (&self.parts, &self.kept);
        let provider = preparation::provider(parts, &row, kept)?;
        let asking = voice_prompt::request(parts, &self.voice, choice.id, &self.said, kept, &row);
        let (request, trim) = asking.await?;
        preparation::must_read(provider.as_ref(), &request)?;
        Ok(Some(Call {
            provider,
            request,
            permits: parts.calls(row.id),
            trim,
            speaks: Some(self.speaks(&choice)),
        }))
    }

    /// One has spoken: those who follow are told.
    pub fn has_said(&mut self, speaker: &str, text: &str) {
        if !text.trim().is_empty() {
            self.said.push(Entry {
                message: Message::new(PromptRole::Assistant, text).with_name(speaker),
                may_go: false,
            });
        }
    }

    /// A space pays for what is said in its name. That the words are out is not taken back when the
    /// price cannot be written down.
    pub async fn charge(&self, bill: Bill) {
        let Voice::Space { space, .. } = &self.voice else {
            return;
        };
        let (id, n_tokens) = (
            space.id,
            bill.input_tokens.saturating_add(bill.output_tokens),
        );
        let paying = self.parts.db.write(move |tx| {
            Box::pin(async move { space::add_tokens_used(tx, id, n_tokens).await })
        });
        let paid: Result<(), DbErr> = paying.await;
        if let Err(error) = paid {
            tracing::warn!(space.id = %id, %error, "space {id} did not pay {n_tokens} tokens: {error}");
        }
    }

    async fn model_of(&self, speaker: MembershipId) -> Result<Option<provider::Model>, DbErr> {
        let seat = self.seat(speaker);
        let own = seat.and_then(|it| it.llm_provider_id);
        let model = seat.and_then(membership::Model::model_override);
        provider::find_usable(self.parts.db.reader(), own, model).await
    }

    fn seat(&self, id: MembershipId) -> Option<&membership::Model> {
        match &self.voice {
            Voice::Character { .. } => None,
            Voice::Space { seats, .. } => seats.iter().find(|it| it.id == id),
        }
    }

    fn speaks(&self, choice: &SpeakerChoice) -> Value {
        match (&self.voice, self.seat(choice.id)) {
            (Voice::Space { .. }, Some(seat)) => speakers_of::metadata(seat, &choice.reason),
            (Voice::Space { .. }, None) => Value::Null,
            (Voice::Character { row, .. }, _) => json!({
                "speaker": row.name,
                "speaker_id": voice::name_of(row.id),
                "chosen_because": choice.reason,
            }),
        }
    }
}

async fn candidates(parts: &Parts, all: &[membership::Model]) -> Result<Vec<Candidate>, DbErr> {
    let cards = all.iter().filter_map(|it| it.character_id);
    let of_cards = character::load_talkativeness(parts.db.reader(), cards).await?;
    Ok(from_memberships::candidates(all, &of_cards))
}
