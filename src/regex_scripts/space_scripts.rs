//! Loads the scripts that may run in a space: those of its characters' cards and of the presets in use,
//! if their owners allow them and no moderator has switched them off.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use base::ids::{CharacterId, MembershipId, PresetId, SpaceId};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, FromQueryResult, QueryFilter, QueryOrder,
    QuerySelect,
};
use serde_json::Value;
use tavern::regex_scripts::script::RegexScript;
use tavern::regex_scripts::script_list;

use crate::characters::character;
use crate::presets::{preset, resolve};
use crate::regex_scripts::speaker_scripts::SpeakerScripts;
use crate::spaces::membership::{MembershipKind, MembershipStatus};
use crate::spaces::{membership, space};

/// The scripts of a space.
#[derive(Clone, Debug, Default)]
pub struct SpaceScripts {
    /// The scripts for what each character writes; those without scripts are missing.
    members: HashMap<MembershipId, Arc<SpeakerScripts>>,
    /// The scripts for what people write, where nobody in particular replies.
    pub people: Arc<SpeakerScripts>,
    /// The name of the first person.
    pub user: String,
}

/// What the settings of a space switch off.
#[derive(Debug, Default)]
struct SwitchedOff {
    memberships: HashSet<i64>,
    presets: HashSet<i64>,
}

/// A character of the space.
#[derive(Debug, FromQueryResult)]
struct CharacterRow {
    id: MembershipId,
    status: MembershipStatus,
    character_id: Option<CharacterId>,
    preset_id: Option<PresetId>,
    cached_display_name: String,
}

impl SpaceScripts {
    /// Loads the scripts of a space.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn load(db: &impl ConnectionTrait, id: SpaceId) -> Result<Self, DbErr> {
        let settings: Option<Value> = space::Entity::find_by_id(id)
            .select_only()
            .column(space::Column::Settings)
            .into_tuple()
            .one(db)
            .await?;
        let settings = settings.unwrap_or_default();
        let off = SwitchedOff::read(&settings["regex_scripts_off"]);
        let rows = list_characters(db, id).await?;
        let of_space = resolve::preset_id_of(&settings["preset"]);
        let presets = rows.iter().filter_map(|it| it.preset_id).chain(of_space);
        let presets = presets.filter(|it| !off.presets.contains(&it.0));
        let presets = load_presets(db, presets.collect()).await?;
        let is_on = |it: &&CharacterRow| !off.memberships.contains(&it.id.0);
        let cards = rows.iter().filter(is_on).filter_map(|it| it.character_id);
        let cards = load_cards(db, cards.collect()).await?;
        let of_preset = |own: Option<PresetId>| {
            let mut chosen = own.into_iter().chain(of_space);
            let found = chosen.find_map(|it| presets.get(&it));
            found.map_or(&[][..], Vec::as_slice)
        };
        let of_card = |row: &CharacterRow| {
            let card = row.character_id.filter(|_| is_on(&row));
            let found = card.and_then(|it| cards.get(&it));
            found.map_or(&[][..], Vec::as_slice)
        };
        let mut all = Self {
            user: first_person(db, id).await?,
            ..Self::default()
        };
        let mut people = SpeakerScripts::default();
        let mut first_name: Option<Arc<str>> = None;
        for row in &rows {
            let name: Arc<str> = row.cached_display_name.as_str().into();
            let mut own = SpeakerScripts::default();
            own.add(of_card(row), true, &name);
            own.add(of_preset(row.preset_id), false, &name);
            if !own.all().is_empty() {
                all.members.insert(row.id, Arc::new(own));
            }
            if row.status == MembershipStatus::Active {
                people.add_missing(of_card(row), &name);
                first_name.get_or_insert(name);
            }
        }
        people.add(of_preset(None), false, &first_name.unwrap_or_default());
        all.people = Arc::new(people);
        Ok(all)
    }

    /// Returns the scripts for what a character writes, and for what is sent to its model.
    pub fn of_member(&self, id: MembershipId) -> Option<&Arc<SpeakerScripts>> {
        self.members.get(&id)
    }

    /// Returns the approximate size, in bytes.
    pub fn n_bytes(&self) -> usize {
        const PER_SCRIPT: usize = 400;
        let lists = self.members.values().chain([&self.people]);
        let scripts = lists.flat_map(|it| it.all());
        let sizes = scripts.map(|it| {
            let script = &it.script;
            let trimmed: usize = script.trim_strings.iter().map(String::len).sum();
            PER_SCRIPT + script.find_regex.len() + script.replace_string.len() + trimmed
        });
        PER_SCRIPT + sizes.sum::<usize>()
    }
}

impl SwitchedOff {
    fn read(setting: &Value) -> Self {
        let ids = |key: &str| {
            let ids = setting[key].as_array().map_or(&[][..], Vec::as_slice);
            ids.iter().filter_map(Value::as_i64).collect()
        };
        Self {
            memberships: ids("membership_ids"),
            presets: ids("preset_ids"),
        }
    }
}

/// Returns the characters of a space by position, removed ones included: their messages are still shown.
async fn list_characters(
    db: &impl ConnectionTrait,
    space: SpaceId,
) -> Result<Vec<CharacterRow>, DbErr> {
    membership::Entity::find()
        .select_only()
        .columns([
            membership::Column::Id,
            membership::Column::Status,
            membership::Column::CharacterId,
            membership::Column::PresetId,
            membership::Column::CachedDisplayName,
        ])
        .filter(membership::Column::SpaceId.eq(space))
        .filter(membership::Column::Kind.eq(MembershipKind::Character))
        .order_by_asc(membership::Column::Position)
        .order_by_asc(membership::Column::Id)
        .into_model()
        .all(db)
        .await
}

/// Returns the name of the first person by position; empty if there is none.
async fn first_person(db: &impl ConnectionTrait, space: SpaceId) -> Result<String, DbErr> {
    let found: Option<String> = membership::Entity::find()
        .select_only()
        .column(membership::Column::CachedDisplayName)
        .filter(membership::Column::SpaceId.eq(space))
        .filter(membership::Column::Kind.eq(MembershipKind::Human))
        .filter(membership::is_active())
        .order_by_asc(membership::Column::Position)
        .order_by_asc(membership::Column::Id)
        .limit(1)
        .into_tuple()
        .one(db)
        .await?;
    Ok(found.unwrap_or_default())
}

/// Returns the scripts of those of these cards whose owners allow them.
async fn load_cards(
    db: &impl ConnectionTrait,
    ids: HashSet<CharacterId>,
) -> Result<HashMap<CharacterId, Vec<RegexScript>>, DbErr> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows: Vec<(CharacterId, Value)> = character::Entity::find()
        .select_only()
        .columns([character::Column::Id, character::Column::Card])
        .filter(character::Column::Id.is_in(ids))
        .filter(character::Column::RegexAllowed.eq(true))
        .into_tuple()
        .all(db)
        .await?;
    let rows = rows.iter();
    Ok(rows
        .map(|(id, card)| (*id, script_list::of_card(card)))
        .collect())
}

/// Returns the scripts of those of these presets whose owners allow them; presets without any are
/// missing.
async fn load_presets(
    db: &impl ConnectionTrait,
    ids: HashSet<PresetId>,
) -> Result<HashMap<PresetId, Vec<RegexScript>>, DbErr> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows: Vec<(PresetId, Option<Value>)> = preset::Entity::find()
        .select_only()
        .columns([preset::Column::Id, preset::Column::Origin])
        .filter(preset::Column::Id.is_in(ids))
        .filter(preset::Column::RegexAllowed.eq(true))
        .into_tuple()
        .all(db)
        .await?;
    let rows = rows.iter();
    let lists = rows.map(|(id, origin)| (*id, script_list::of_preset(origin.as_ref())));
    Ok(lists.filter(|(_, scripts)| !scripts.is_empty()).collect())
}
