//! The last transaction of a space that comes in: it gets its owner, and everybody sees it.

use crate::accounts::names;
use crate::accounts::user;
use crate::characters::card::Card;
use crate::characters::character;
use crate::characters::quota;
use crate::characters::quota::StorageQuota;
use crate::clock::Timestamp;
use crate::conversations::conversation;
use crate::conversations::deletion;
use crate::conversations::import_job;
use crate::conversations::import_writer::ChatImportError;
use crate::conversations::message;
use crate::db::connect::Db;
use crate::ids::CharacterId;
use crate::ids::PresetId;
use crate::ids::SpaceId;
use crate::ids::UserId;
use crate::presets::partial::PartialPreset;
use crate::presets::preset;
use crate::spaces::membership;
use crate::spaces::membership::MembershipKind;
use crate::spaces::membership::MembershipRole;
use crate::spaces::membership::MembershipStatus;
use crate::spaces::membership_changes;
use crate::spaces::space;
use crate::tools::tool_settings;
use crate::transfers::assets;
use crate::transfers::books;
use crate::transfers::document;
use crate::transfers::rows::Known;
use crate::transfers::rows::broken;
use crate::transfers::rows::object;
use crate::transfers::timed;
use crate::transfers::unpack::Head;
use sea_orm::ActiveModelTrait;
use sea_orm::ActiveValue::NotSet;
use sea_orm::ActiveValue::Set;
use sea_orm::ColumnTrait;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::IntoActiveModel;
use sea_orm::QueryFilter;
use serde_json::Value;
use serde_json::json;
use std::collections::HashMap;
use std::collections::HashSet;
use std::sync::Arc;

/// What the last transaction writes.
#[derive(Clone, Debug)]
pub struct Finished {
    pub import: import_job::Model,
    pub hidden: SpaceId,
    pub owner: user::Model,
    /// How many bytes their cards may take; 0 is no limit.
    pub limit: u64,
    pub head: Arc<Head>,
    pub known: Arc<Known>,
    pub assets: Arc<assets::Arrived>,
    pub n_messages: i64,
    pub now: Timestamp,
}

/// Puts cards, books and presets on the owner's shelf, seats everybody who is known here, and shows it all.
pub async fn finish(db: &Db, it: Finished) -> Result<SpaceId, ChatImportError> {
    db.write(move |tx| {
        Box::pin(async move {
            if !import_job::heartbeat(tx, it.import.id, 0, it.n_messages, it.now).await? {
                return Err(ChatImportError::Canceled);
            }
            let (owner, limit) = (it.owner.id, it.limit);
            user::lock_row(tx, owner).await?;
            let cards = cards(tx, it.owner.id, &it.head).await?;
            let presets = presets(tx, it.owner.id, &it.head, it.now).await?;
            let pictures = it.assets.give(tx, &cards, it.now).await?;
            let texts = deletion::measure_space(tx, it.hidden).await?.text_bytes;
            let texts = u64::try_from(texts).unwrap_or(0);
            quota::require_quota(tx, StorageQuota { owner, limit }, texts).await?;
            seat_all(tx, &it, &cards, &pictures, &presets).await?;
            forks(tx, &it.head, &it.known).await?;
            let (head, known) = (&it.head, &it.known);
            let keys =
                books::shelve(tx, it.owner.id, it.hidden, head, known, &cards, it.now).await?;
            timed::rename(tx, head, known, &keys, &cards).await?;
            let row = space::ActiveModel {
                id: Set(it.hidden),
                owner_id: Set(Some(it.owner.id)),
                settings: Set(tool_settings::with_approval(with_preset(
                    &it.head.space.settings,
                    &presets,
                ))),
                ..Default::default()
            };
            let space = row.update(tx).await?;
            let mut import = it.import.into_active_model();
            import.status = Set(import_job::ImportStatus::Succeeded);
            import.hidden_space_id = Set(None);
            import.space_id = Set(Some(space.id));
            import.finished_at = Set(Some(it.now));
            import.update(tx).await?;
            Ok(space.id)
        })
    })
    .await
}

async fn cards(
    tx: &impl ConnectionTrait,
    owner: UserId,
    head: &Head,
) -> Result<HashMap<i64, CharacterId>, ChatImportError> {
    let mut known = HashMap::new();
    for it in &head.characters {
        let card = Card::from_document(it.card.clone());
        let card = card.map_err(|_| broken(document::CHARACTERS))?;
        let mut row = character::new_row(owner, card, it.created_at);
        row.status = Set(it.status);
        known.insert(it.key, row.insert(tx).await?.id);
    }
    Ok(known)
}

async fn presets(
    tx: &impl ConnectionTrait,
    owner: UserId,
    head: &Head,
    now: Timestamp,
) -> Result<HashMap<i64, PresetId>, ChatImportError> {
    let mut known = HashMap::new();
    for it in &head.presets {
        let stated: Option<PartialPreset> = serde_json::from_value(it.document.clone()).ok();
        if stated.is_none_or(|it| it.validate().is_err()) {
            return Err(broken(document::PRESETS));
        }
        let row = preset::ActiveModel {
            id: NotSet,
            owner_id: Set(Some(owner)),
            name: Set(
                names::truncate_to_display_name(&it.name, 100).unwrap_or_else(|| "?".to_owned())
            ),
            document: Set(it.document.clone()),
            origin: Set(it.origin.clone()),
            status: Set(preset::PresetStatus::Active),
            created_at: Set(now),
            updated_at: Set(now),
        };
        known.insert(it.key, row.insert(tx).await?.id);
    }
    Ok(known)
}

/// Settings that name a preset of the file name the one that stands for it.
fn with_preset(settings: &Value, presets: &HashMap<i64, PresetId>) -> Value {
    let mut settings = object(settings);
    if let Some(named) = settings.pointer_mut("/preset/preset_id") {
        let known = named.as_i64().and_then(|key| presets.get(&key));
        *named = json!(known);
    }
    settings
}

/// Characters sit where they sat. Of the people only the new owner is here: on their old seat, if
/// they had one under the same username, else on a new one.
async fn seat_all(
    tx: &impl ConnectionTrait,
    it: &Finished,
    cards: &HashMap<i64, CharacterId>,
    pictures: &HashMap<CharacterId, String>,
    presets: &HashMap<i64, PresetId>,
) -> Result<(), ChatImportError> {
    let mut is_owner_seated = false;
    let mut seated = HashSet::new();
    for seat in &it.head.seats {
        let mut row = membership::ActiveModel {
            id: Set(it.known.seats[&seat.key]),
            preset_id: Set(seat.preset.and_then(|key| presets.get(&key).copied())),
            settings: Set(with_preset(&seat.settings, presets)),
            ..Default::default()
        };
        let card = seat.character.and_then(|key| cards.get(&key).copied());
        let name = seat.username.as_deref().map(user::normalize_username);
        if let (MembershipKind::Character, Some(card)) = (seat.kind, card)
            && seated.insert(card)
        {
            row.character_id = Set(Some(card));
            row.avatar_hash = Set(pictures.get(&card).cloned());
            row.status = Set(seat.status);
        } else if seat.kind == MembershipKind::Human
            && name.as_ref() == Some(&it.owner.username_key)
            && !is_owner_seated
        {
            is_owner_seated = true;
            row.user_id = Set(Some(it.owner.id));
            row.role = Set(MembershipRole::Owner);
            row.status = Set(MembershipStatus::Active);
        }
        row.update(tx).await?;
    }
    if !is_owner_seated {
        let last = it.head.seats.iter().map(|it| it.position).max();
        let position = last.map_or(0, |it| it.saturating_add(1));
        let (owner, name) = (it.owner.id, it.owner.display_name.clone());
        let row = membership_changes::new_human_row(
            it.hidden,
            owner,
            MembershipRole::Owner,
            name,
            position,
            it.now,
        );
        row.insert(tx).await?;
    }
    Ok(())
}

/// Where each branch begins, now that every message is there.
async fn forks(tx: &impl ConnectionTrait, head: &Head, known: &Known) -> Result<(), DbErr> {
    for it in &head.conversations {
        let (Some(parent), Some(seq)) = (it.parent, it.fork_seq) else {
            continue;
        };
        let fork = message::Entity::find()
            .filter(message::Column::ConversationId.eq(known.conversations[&parent]))
            .filter(message::Column::Seq.eq(seq))
            .one(tx)
            .await?;
        let row = conversation::ActiveModel {
            id: Set(known.conversations[&it.key]),
            forked_from_message_id: Set(fork.map(|it| it.id)),
            ..Default::default()
        };
        row.update(tx).await?;
    }
    Ok(())
}
