//! The last transaction of a space import: creates characters, presets and lorebooks, updates the
//! memberships, sets the owner and makes the space visible.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use agent::tools::tool_settings;
use base::clock::Timestamp;
use base::display_name;
use base::ids::{CharacterId, PresetId, SpaceId, UserId};
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel,
    QueryFilter,
};
use serde_json::{Value, json};
use tavern::cards::card::Card;
use tavern::chats::line_report::LineReport;
use tavern::presets::partial_preset::PartialPreset;

use crate::accounts::{user, username_password};
use crate::characters::quota::StorageQuota;
use crate::characters::{character, quota};
use crate::conversations::chats::import_job;
use crate::conversations::chats::import_writer::ChatImportError;
use crate::conversations::jobs::deletion;
use crate::conversations::{conversation, message};
use crate::db::connect::Db;
use crate::memories::models::model_setting;
use crate::presets::preset;
use crate::space_transfer::import_data::{FileHead, IdMap, invalid_file, object_or_empty};
use crate::space_transfer::pictures::picture_transfer;
use crate::space_transfer::{asset_transfer, document, import_lore_state, lorebook_transfer};
use crate::spaces::membership::{MembershipKind, MembershipRole, MembershipStatus};
use crate::spaces::{membership, roster_changes, space};

/// The input of the last transaction.
#[derive(Clone, Debug)]
pub struct SpaceImportResult {
    pub import: import_job::Model,
    pub space_id: SpaceId,
    pub owner: user::Model,
    /// The owner's storage quota in bytes; 0 means no limit.
    pub quota_bytes: u64,
    pub head: Arc<FileHead>,
    pub ids: Arc<IdMap>,
    pub assets: Arc<asset_transfer::SpooledAssets>,
    pub n_messages: i64,
    /// The memories and summaries that were not imported.
    pub report: LineReport,
    pub now: Timestamp,
}

/// Creates cards, lorebooks and presets in the owner's library, updates the memberships, and makes
/// the space visible.
pub async fn finish(db: &Db, result: SpaceImportResult) -> Result<SpaceId, ChatImportError> {
    db.write(move |tx| {
        Box::pin(async move {
            if !import_job::save_progress(tx, result.import.id, 0, result.n_messages).await? {
                return Err(ChatImportError::Canceled);
            }
            let (owner, limit) = (result.owner.id, result.quota_bytes);
            user::lock_row(tx, owner).await?;
            let character_ids = create_characters(tx, result.owner.id, &result.head).await?;
            let preset_ids = create_presets(tx, result.owner.id, &result.head, result.now).await?;
            let pictures = result
                .assets
                .attach_to_characters(tx, &character_ids, result.now)
                .await?;
            let (assets, conversations) = (&result.assets, &result.ids.conversations);
            picture_transfer::attach(tx, assets, conversations, (owner, result.now)).await?;
            let texts = deletion::measure_space(tx, result.space_id)
                .await?
                .text_bytes;
            let texts = u64::try_from(texts).unwrap_or(0);
            quota::require_quota(tx, StorageQuota { owner, limit }, texts).await?;
            update_memberships(tx, &result, &character_ids, &pictures, &preset_ids).await?;
            set_branch_points(tx, &result.head, &result.ids).await?;
            let (head, known) = (&result.head, &result.ids);
            let keys = lorebook_transfer::create_all(
                tx,
                result.owner.id,
                result.space_id,
                head,
                known,
                &character_ids,
                result.now,
            )
            .await?;
            import_lore_state::remap(tx, head, known, &keys, &character_ids).await?;
            let row = space::ActiveModel {
                id: Set(result.space_id),
                owner_id: Set(Some(result.owner.id)),
                settings: Set(imported_settings(&result.head.space.settings, &preset_ids)),
                ..Default::default()
            };
            let space = row.update(tx).await?;
            let mut import = result.import.into_active_model();
            import.status = Set(import_job::ImportStatus::Succeeded);
            import.hidden_space_id = Set(None);
            import.space_id = Set(Some(space.id));
            import.report = Set(json!({ "report": result.report }));
            import.finished_at = Set(Some(result.now));
            import.update(tx).await?;
            Ok(space.id)
        })
    })
    .await
}

async fn create_characters(
    tx: &impl ConnectionTrait,
    owner: UserId,
    head: &FileHead,
) -> Result<HashMap<i64, CharacterId>, ChatImportError> {
    let mut ids = HashMap::new();
    for it in &head.characters {
        let card = Card::from_document(it.card.clone());
        let card = card.map_err(|_| invalid_file(document::CHARACTERS))?;
        let mut row = character::new_row(owner, card, it.created_at);
        row.status = Set(it.status);
        ids.insert(it.key, row.insert(tx).await?.id);
    }
    Ok(ids)
}

async fn create_presets(
    tx: &impl ConnectionTrait,
    owner: UserId,
    head: &FileHead,
    now: Timestamp,
) -> Result<HashMap<i64, PresetId>, ChatImportError> {
    let mut ids = HashMap::new();
    for it in &head.presets {
        let stated: Option<PartialPreset> = serde_json::from_value(it.document.clone()).ok();
        if stated.is_none_or(|it| it.validate().is_err()) {
            return Err(invalid_file(document::PRESETS));
        }
        let row = preset::ActiveModel {
            id: NotSet,
            owner_id: Set(Some(owner)),
            name: Set(display_name::truncate(&it.name, 100).unwrap_or_else(|| "?".to_owned())),
            document: Set(it.document.clone()),
            origin: Set(it.origin.clone()),
            regex_allowed: NotSet, // each owner allows the scripts
            status: Set(preset::PresetStatus::Active),
            created_at: Set(now),
            updated_at: Set(now),
        };
        ids.insert(it.key, row.insert(tx).await?.id);
    }
    Ok(ids)
}

/// Returns the settings of the space, without what is valid only on the server of the file.
fn imported_settings(settings: &Value, presets: &HashMap<i64, PresetId>) -> Value {
    let mut settings = tool_settings::with_approval(with_preset_id(settings, presets));
    if let Some(all) = settings.as_object_mut() {
        // Its ids are those of the file; here no script is allowed yet.
        all.shift_remove("regex_scripts_off");
    }
    model_setting::without_models(settings)
}

/// Replaces the preset id of the file in the settings by the new one.
fn with_preset_id(settings: &Value, presets: &HashMap<i64, PresetId>) -> Value {
    let mut settings = object_or_empty(settings);
    if let Some(named) = settings.pointer_mut("/preset/preset_id") {
        let known = named.as_i64().and_then(|key| presets.get(&key));
        *named = json!(known);
    }
    settings
}

/// Returns the key of the membership that the new owner gets: the first one with the same username.
pub fn find_membership_of(owner: &user::Model, head: &FileHead) -> Option<i64> {
    let is_of_owner = |it: &&document::ExportedMembership| {
        let name = it.username.as_deref();
        let name = name.map(username_password::normalize_username);
        it.kind == MembershipKind::Human && name.as_ref() == Some(&owner.username_key)
    };
    head.memberships.iter().find(is_of_owner).map(|it| it.key)
}

/// Assigns the characters to their memberships. Of the users only the new owner is added: to their
/// old membership, if there is one with the same username, otherwise to a new one.
async fn update_memberships(
    tx: &impl ConnectionTrait,
    result: &SpaceImportResult,
    character_ids: &HashMap<i64, CharacterId>,
    pictures: &HashMap<CharacterId, String>,
    presets: &HashMap<i64, PresetId>,
) -> Result<(), ChatImportError> {
    let mut has_owner = false;
    let mut used_characters = HashSet::new();
    let of_owner = find_membership_of(&result.owner, &result.head);
    for membership in &result.head.memberships {
        let mut row = membership::ActiveModel {
            id: Set(result.ids.memberships[&membership.key]),
            preset_id: Set(membership.preset.and_then(|key| presets.get(&key).copied())),
            settings: Set(with_preset_id(&membership.settings, presets)),
            ..Default::default()
        };
        let card = membership
            .character
            .and_then(|key| character_ids.get(&key).copied());
        if let (MembershipKind::Character, Some(card)) = (membership.kind, card)
            && used_characters.insert(card)
        {
            row.character_id = Set(Some(card));
            row.avatar_hash = Set(pictures.get(&card).cloned());
            row.status = Set(membership.status);
        } else if membership.kind == MembershipKind::Human
            && Some(membership.key) == of_owner
            && !has_owner
        {
            has_owner = true;
            row.user_id = Set(Some(result.owner.id));
            row.role = Set(MembershipRole::Owner);
            row.status = Set(MembershipStatus::Active);
        }
        row.update(tx).await?;
    }
    if !has_owner {
        let last = result.head.memberships.iter().map(|it| it.position).max();
        let position = last.map_or(0, |it| it.saturating_add(1));
        let (owner, name) = (result.owner.id, result.owner.display_name.clone());
        let row = roster_changes::new_human_row(
            result.space_id,
            owner,
            MembershipRole::Owner,
            name,
            position,
            result.now,
        );
        row.insert(tx).await?;
    }
    Ok(())
}

/// Sets where each branch begins; requires that every message exists.
async fn set_branch_points(
    tx: &impl ConnectionTrait,
    head: &FileHead,
    ids: &IdMap,
) -> Result<(), DbErr> {
    for it in &head.conversations {
        let (Some(parent), Some(seq)) = (it.parent, it.fork_seq) else {
            continue;
        };
        let fork = message::Entity::find()
            .filter(message::Column::ConversationId.eq(ids.conversations[&parent]))
            .filter(message::Column::Seq.eq(seq))
            .one(tx)
            .await?;
        let row = conversation::ActiveModel {
            id: Set(ids.conversations[&it.key]),
            forked_from_message_id: Set(fork.map(|it| it.id)),
            ..Default::default()
        };
        row.update(tx).await?;
    }
    Ok(())
}
