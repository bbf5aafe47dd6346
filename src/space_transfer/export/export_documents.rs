//! Returns the documents of a space's export file (settings, memberships, characters, presets,
//! conversations and messages): converts rows of the caller and queries the missing ones. Omits the
//! texts of deleted messages and of cards that the user may not read.

use std::collections::HashMap;

use base::ids::CharacterId;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
};
use serde_json::Value;

use crate::accounts::user;
use crate::characters::{character, public_card};
use crate::conversations::annotations::message_annotations::MessageAnnotations;
use crate::conversations::audience::message_audience::Audience;
use crate::conversations::audience::viewer::Viewer;
use crate::conversations::chats::chat_export;
use crate::conversations::message::Visibility;
use crate::conversations::timeline_page::Stub;
use crate::conversations::{conversation, message, swipe, timeline_page};
use crate::presets::preset;
use crate::prompt::record::hidden_cards::HiddenCards;
use crate::space_transfer::document;
use crate::spaces::{membership, space};

/// Messages held in memory.
const PAGE_SIZE: u64 = 100;

/// Returns the document of the space's settings.
pub fn space_document(space: &space::Model) -> document::ExportedSpace {
    document::ExportedSpace {
        name: space.name.clone(),
        description: space.description.clone(),
        reply_order: space.reply_order,
        replies_per_turn: space.replies_per_turn,
        card_handling_mode: space.card_handling_mode,
        allow_self_responses: space.allow_self_responses,
        auto_mode_enabled: space.auto_mode_enabled,
        auto_mode_delay_ms: space.auto_mode_delay_ms,
        auto_mode_max_turns: space.auto_mode_max_turns,
        during_generation_user_input_policy: space.during_generation_user_input_policy,
        user_turn_debounce_ms: space.user_turn_debounce_ms,
        slow_mode_s: space.slow_mode_s,
        humans_take_turns: space.humans_take_turns,
        human_turn_timeout_s: space.human_turn_timeout_s,
        group_regenerate_mode: space.group_regenerate_mode,
        model_language: space.model_language.clone(),
        settings: space.settings.clone(),
        token_limit: space.token_limit,
        created_at: space.created_at,
    }
}

/// Returns the memberships of the space.
///
/// # Errors
/// Returns `DbErr` when the database fails.
pub async fn membership_documents(
    db: &impl ConnectionTrait,
    memberships: &[membership::Model],
) -> Result<Vec<document::ExportedMembership>, DbErr> {
    let people = user::Entity::find()
        .filter(user::Column::Id.is_in(memberships.iter().filter_map(|it| it.user_id)))
        .all(db)
        .await?;
    let usernames: HashMap<_, _> = people.into_iter().map(|it| (it.id, it.username)).collect();
    let memberships = memberships.iter().map(|it| document::ExportedMembership {
        key: it.id.0,
        kind: it.kind,
        username: it.user_id.and_then(|id| usernames.get(&id).cloned()),
        character: it.character_id.map(|id| id.0),
        role: it.role,
        position: it.position,
        status: it.status,
        participation: it.participation,
        name: it.cached_display_name.clone(),
        aliases: it.alias_list(),
        persona: it.persona.clone(),
        talkativeness: it.talkativeness,
        preset: it.preset_id.map(|id| id.0),
        settings: it.settings.clone(),
        created_at: it.created_at,
    });
    Ok(memberships.collect())
}

/// Returns the characters whose cards these memberships use or used.
///
/// # Errors
/// Returns `DbErr` when the database fails.
pub async fn character_ids(
    db: &impl ConnectionTrait,
    memberships: &[membership::Model],
) -> Result<Vec<CharacterId>, DbErr> {
    character::Entity::find()
        .filter(character::Column::Id.is_in(memberships.iter().filter_map(|it| it.character_id)))
        .order_by_asc(character::Column::Id)
        .select_only()
        .column(character::Column::Id)
        .into_tuple()
        .all(db)
        .await
}

/// Returns a card; only the public part of a hidden card.
///
/// # Errors
/// Returns `DbErr` when the database fails.
pub async fn character_document(
    db: &impl ConnectionTrait,
    id: CharacterId,
    hidden: &HiddenCards,
) -> Result<Option<document::ExportedCharacter>, DbErr> {
    let found = character::Entity::find_by_id(id).one(db).await?;
    Ok(found.map(|it| document::ExportedCharacter {
        key: it.id.0,
        status: it.status,
        card: match hidden.contains(it.id) {
            true => public_document(&it),
            false => it.card,
        },
        created_at: it.created_at,
    }))
}

fn public_document(character: &character::Model) -> Value {
    let card = character.card();
    card.map_or_else(
        |_| serde_json::json!({"data": {"name": character.name}}),
        |card| public_card::public_document(&card),
    )
}

/// Returns the presets that the space and its memberships use.
///
/// # Errors
/// Returns `DbErr` when the database fails.
pub async fn preset_documents(
    db: &impl ConnectionTrait,
    space: &space::Model,
    memberships: &[membership::Model],
) -> Result<Vec<document::ExportedPreset>, DbErr> {
    let named = |settings: &Value| settings["preset"]["preset_id"].as_i64();
    let of_memberships = memberships
        .iter()
        .flat_map(|it| [it.preset_id.map(|id| id.0), named(&it.settings)]);
    let ids = of_memberships.chain([named(&space.settings)]).flatten();
    let rows = preset::Entity::find()
        .filter(preset::Column::Id.is_in(ids))
        .order_by_asc(preset::Column::Id)
        .all(db)
        .await?;
    let rows = rows.into_iter().map(|it| document::ExportedPreset {
        key: it.id.0,
        name: it.name,
        document: it.document,
        origin: it.origin,
    });
    Ok(rows.collect())
}

/// Returns the conversations of the space, without their messages.
///
/// # Errors
/// Returns `DbErr` when the database fails.
pub async fn conversation_documents(
    db: &impl ConnectionTrait,
    all: &[conversation::Model],
    hidden: &HiddenCards,
) -> Result<Vec<document::ExportedConversation>, DbErr> {
    let forks: Vec<(i64, i64)> = message::Entity::find()
        .select_only()
        .column(message::Column::Id)
        .column(message::Column::Seq)
        .filter(message::Column::Id.is_in(all.iter().filter_map(|it| it.forked_from_message_id)))
        .into_tuple()
        .all(db)
        .await?;
    let seqs: HashMap<i64, i64> = forks.into_iter().collect();
    let documents = all.iter().map(|it| document::ExportedConversation {
        key: it.id.0,
        kind: it.kind,
        title: it.title.clone(),
        parent: it.parent_conversation_id.map(|id| id.0),
        fork_seq: it
            .forked_from_message_id
            .and_then(|id| seqs.get(&id.0).copied()),
        last_seq: it.last_seq,
        auto_mode_turns: it.auto_mode_turns,
        settings: it.settings.clone(),
        variables: variables_of(it, hidden),
        created_at: it.created_at,
        archived_at: it.archived_at,
        summary_from_seq: it.summary_from_seq,
    });
    Ok(documents.collect())
}

/// Returns the variables of a conversation. Macros of a hidden card may have stored its text in
/// them.
fn variables_of(conversation: &conversation::Model, hidden: &HiddenCards) -> Value {
    let mut variables = conversation.variables.clone();
    if let Some(all) = variables.as_object_mut().filter(|_| !hidden.is_empty()) {
        all.remove("macros");
    }
    variables
}

/// Returns the next messages of a conversation after `at` that the viewer sees, hidden ones included: as many
/// as fit into memory with all their swipes. Later messages than those of the row are left out.
///
/// # Errors
/// Returns `DbErr` when the database fails.
pub async fn load_messages_after(
    db: &impl ConnectionTrait,
    conversation: &conversation::Model,
    viewer: Viewer,
    at: i64,
) -> Result<Vec<message::Model>, DbErr> {
    use message::Column;
    let stubs: Vec<Stub> = message::Entity::find()
        .filter(Column::ConversationId.eq(conversation.id))
        .filter(Column::Seq.gt(at))
        .filter(Column::Seq.lte(conversation.last_seq))
        .filter(viewer.condition((message::Entity, Column::Audience)))
        .order_by_asc(Column::Seq)
        .limit(PAGE_SIZE)
        .select_only()
        .column(Column::Seq)
        .column_as(timeline_page::stored_bytes(), "bytes")
        .into_tuple()
        .all(db)
        .await?;
    let stubs = chat_export::take_fitting(db, conversation.id, stubs).await?;
    message::Entity::find()
        .filter(Column::ConversationId.eq(conversation.id))
        .filter(Column::Seq.is_in(stubs.iter().map(|(seq, _)| *seq)))
        .order_by_asc(Column::Seq)
        .all(db)
        .await
}

/// Returns the keys of the memberships of an audience.
pub fn audience_keys(audience: Option<&Audience>) -> Option<Vec<i64>> {
    audience.map(|it| it.members().iter().map(|it| it.0).collect())
}

/// Returns a message with all its swipes; of a hidden message only its number remains. It answers only a
/// message that the viewer sees.
pub fn message_document(
    row: &message::Model,
    texts: Vec<swipe::Model>,
    annotations: &MessageAnnotations,
    viewer: Viewer,
) -> document::ExportedMessage {
    let is_gone = row.visibility == Visibility::Hidden;
    let mut line = document::ExportedMessage {
        seq: row.seq,
        membership: row.space_membership_id.0,
        persona: row.persona_name.clone(),
        role: row.role,
        content: row.content.clone(),
        visibility: row.visibility,
        remember: row.is_remembered,
        is_ooc: row.is_ooc,
        active_swipe: row.active_swipe,
        swipe_chosen_by: row.swipe_chosen_by.map(|it| it.0),
        audience: audience_keys(row.audience.as_ref()),
        reply_to: annotations
            .quoted(row.id)
            .filter(|it| viewer.sees(it.audience.as_ref()))
            .map(|it| it.seq),
        reactions: annotations
            .reactions_of(row.id)
            .iter()
            .map(|it| document::ExportedReaction {
                emoji: it.emoji.clone(),
                memberships: it.membership_ids.iter().map(|it| it.0).collect(),
            })
            .collect(),
        is_clone: row.origin_message_id.is_some(),
        created_at: row.created_at,
        edited_at: row.edited_at,
        edited_by: row.edited_by.map(|it| it.0),
        version: row.version,
        token_count: row.token_count,
        metadata: row.metadata.clone(),
        texts: texts
            .into_iter()
            .map(|it| document::ExportedSwipe {
                content: it.content,
                metadata: it.metadata,
                token_count: it.token_count,
                edited_at: it.edited_at,
                edited_by: it.edited_by.map(|it| it.0),
            })
            .collect(),
    };
    if is_gone {
        // Deleted for everyone: the number stays, the text is not exported.
        line.content.clear();
        line.metadata = serde_json::json!({});
        line.active_swipe = 0;
        line.swipe_chosen_by = None;
        line.token_count = 0;
        line.texts.clear();
    }
    line
}
