//! Creates conversations and inserts the greetings of their characters, also of those that join
//! later.

use base::ids::{ConversationId, MembershipId, SpaceId};
use sea_orm::ActiveValue::NotSet;
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter};
use serde::Deserialize;
use serde_json::json;
use tavern::cards::card::Card;
use tavern::macros::variables;
use tavern::macros::variables::{VariableMap, Variables};

use crate::characters::character;
use crate::conversations::{conversation, root_conversation, swipe, timeline};
use crate::prompt::{greeting, space_variable};
use crate::runs::engine::RunEngine;
use crate::runs::error::EngineError;
use crate::runs::scheduling::command::{Command, CommandError, Greeting};
use crate::runs::scheduling::scheduler::StepResult;
use crate::spaces::posts::persona_use;
use crate::spaces::{membership, space};

/// The values of a conversation to create.
#[derive(Clone, Debug)]
pub struct NewConversation {
    pub title: Option<String>,
    pub kind: conversation::ConversationKind,
    pub parent: Option<ConversationId>,
}

impl RunEngine {
    /// Creates a conversation. In a root conversation the characters of the space greet.
    ///
    /// # Errors
    /// Returns `NotFound` when the parent does not exist, or an error when the database fails.
    pub async fn create_conversation(
        &self,
        space: SpaceId,
        new: NewConversation,
    ) -> Result<conversation::Model, EngineError> {
        let row = conversation::Model {
            id: ConversationId(0), // the database assigns it
            space_id: space,
            kind: new.kind,
            title: new.title.unwrap_or_default(),
            parent_conversation_id: new.parent,
            forked_from_message_id: None,
            rev: 0,
            last_seq: 0,
            last_speaker_membership_id: None,
            last_assistant_seq: None,
            last_user_seq: None,
            needs_step: false,
            last_run_seq: 0,
            auto_mode_turns: 0,
            settings: json!({}),
            variables: json!({}),
            created_at: self.context.clock.now(),
            archived_at: None,
            is_hidden: false,
            text_bytes: 0,
            tokens_used: 0,
            unlearned_from_seq: None,
            prompt_starts: serde_json::json!([]),
            summary_from_seq: 1,
            summary_goal_seq: 0,
        };
        let row: conversation::Model = self
            .context
            .db
            .write(move |tx| {
                Box::pin(async move {
                    if let Some(parent) = row.parent_conversation_id {
                        // The lock keeps the parent from being deleted meanwhile.
                        let parent = conversation::lock(tx, parent).await?;
                        parent.ok_or(CommandError::NotFound)?;
                    }
                    let mut row = row.into_active_model();
                    row.id = NotSet;
                    conversation::Entity::insert(row)
                        .exec_with_returning(tx)
                        .await
                        .map_err(EngineError::from)
                })
            })
            .await?;
        if row.kind == conversation::ConversationKind::Root {
            return Ok(self
                .insert_greetings_into(row.id, space)
                .await?
                .state
                .conversation);
        }
        Ok(row)
    }

    /// Inserts the greeting of a character that joined into the root conversation of its space, if
    /// that contains only greetings.
    ///
    /// # Errors
    /// Returns `NotFound` when the membership does not exist, or an error when the database fails.
    pub async fn insert_greetings(&self, membership: MembershipId) -> Result<(), EngineError> {
        let db = self.context.db.reader();
        let membership = membership::find(db, membership).await?;
        let Some(membership) = membership else {
            return Err(CommandError::NotFound.into());
        };
        match root_conversation::find_for_space(db, membership.space_id).await? {
            Some(root) => self
                .insert_greetings_into(root, membership.space_id)
                .await
                .map(|_| ()),
            None => Ok(()),
        }
    }

    async fn insert_greetings_into(
        &self,
        id: ConversationId,
        space: SpaceId,
    ) -> Result<StepResult, EngineError> {
        let greetings = self.load_greetings(id, space).await?;
        self.step(id, Command::InsertGreetings(greetings)).await
    }

    /// Returns the greetings of the characters that have not greeted yet, in roster order.
    async fn load_greetings(
        &self,
        conversation: ConversationId,
        id: SpaceId,
    ) -> Result<Vec<Greeting>, EngineError> {
        let db = self.context.db.reader();
        let row = conversation::Entity::find_by_id(conversation)
            .one(db)
            .await?;
        let row = row.ok_or(CommandError::NotFound)?;
        if !timeline::has_only_greetings(db, &row).await? {
            return Ok(Vec::new());
        }
        let space = space::Entity::find_by_id(id)
            .one(db)
            .await?
            .ok_or(CommandError::NotFound)?;
        let memberships = membership::list_active(db, id).await?;
        let host = memberships
            .iter()
            .find(|it| it.user_id.is_some() && it.user_id == space.owner_id);
        let persona = match host {
            Some(host) => persona_use::find_for_member(db, host).await?,
            None => None,
        };
        let host = persona.map(|it| it.name).unwrap_or_else(|| {
            host.map_or("you", |it| it.cached_display_name.as_str())
                .to_owned()
        });
        let people: Vec<_> = memberships
            .iter()
            .filter(|it| it.kind == membership::MembershipKind::Human)
            .filter(|it| it.status == membership::MembershipStatus::Active)
            .map(|it| it.cached_display_name.as_str())
            .collect();
        let users = people.join(", ");
        let characters: Vec<_> = memberships
            .iter()
            .filter(|it| it.status == membership::MembershipStatus::Active)
            .filter_map(|it| Some((it, it.character_id?)))
            .collect();
        let names: Vec<_> = characters
            .iter()
            .map(|(it, _)| it.cached_display_name.as_str())
            .collect();
        let group = names.join(", ");
        let cards = character::Entity::find()
            .filter(character::Column::Id.is_in(characters.iter().map(|(_, card)| *card)))
            .all(db)
            .await?;
        let mut known = Variables {
            space: space_variable::load_for_space(db, id).await?,
            conversation: conversation_macros(&row),
            ..Variables::default()
        };
        let greeted = timeline::list_authors(db, conversation).await?;
        let mut greetings = Vec::new();
        let new = characters
            .iter()
            .filter(|(it, _)| !greeted.contains(&it.id));
        for (membership, card) in new {
            let Some(row) = cards.iter().find(|it| it.id == *card) else {
                continue;
            };
            let Ok(card) = Card::from_document(row.card.clone()) else {
                continue;
            };
            let audience = greeting::GreetingAudience {
                character: &membership.cached_display_name,
                user: &host,
                group: (characters.len() > 1).then_some(group.as_str()),
                users: &users,
                conversation,
            };
            let now = self.context.clock.now();
            let rendered = greeting::expand_greetings(&card, &audience, known.clone(), now);
            let mut texts = Vec::new();
            for text in rendered.texts {
                let token_count = self.count_tokens(text.clone()).await?;
                texts.push(swipe::SwipeText::new(text, token_count));
            }
            if !texts.is_empty() {
                // Later greetings see the variables that earlier ones have set.
                variables::apply(&rendered.changes.conversation, &mut known.conversation);
                variables::apply(&rendered.changes.space, &mut known.space);
                greetings.push(Greeting {
                    membership: membership.id,
                    texts,
                    macros: rendered.changes,
                });
            }
        }
        Ok(greetings)
    }
}

/// Returns the variables that macros have set in a conversation.
fn conversation_macros(row: &conversation::Model) -> VariableMap {
    VariableMap::deserialize(&row.variables["macros"]).unwrap_or_default()
}
