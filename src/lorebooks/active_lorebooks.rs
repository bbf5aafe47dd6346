//! Loads the lorebooks that a prompt uses: those linked to its conversation, persona, space and
//! speaker, the one embedded in the speaker's card, and the one that the card names.

use std::collections::HashMap;

use base::ids::{CharacterId, ConversationId, LorebookId, MembershipId, SpaceId, UserId};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder,
};
use serde_json::Value;
use tavern::cards::card::Card;
use tavern::lorebook::engine_lorebook::{Lorebook, LorebookEntry, LorebookSource};
use tavern::lorebook_files::{entry, lenient_json, world_info};

use crate::lorebooks::lorebook_link::LinkTarget;
use crate::lorebooks::{lorebook, lorebook_entry, lorebook_link};

/// The facts about a prompt that decide which lorebooks take part.
#[derive(Clone, Copy, Debug)]
pub struct LoreRequest<'a> {
    /// `None` if the messages are not stored.
    pub conversation: Option<ConversationId>,
    /// `None` if the speaker is used outside a space.
    pub space: Option<SpaceId>,
    /// The membership that `{{user}}` refers to.
    pub user_membership: Option<MembershipId>,
    /// The character that `{{user}}` plays as their persona, if any.
    pub user_character: Option<CharacterId>,
    /// The character that speaks, if any.
    pub speaker: Option<LoreSpeaker<'a>>,
}

/// The character that speaks.
#[derive(Clone, Copy, Debug)]
pub struct LoreSpeaker<'a> {
    pub character: CharacterId,
    pub owner: Option<UserId>,
    pub card: &'a Card,
}

/// Returns the lorebooks of a prompt by precedence: linked to the conversation, the persona, the
/// space; then embedded in the speaker's card, linked to the speaker, named by the card.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn load(
    db: &impl ConnectionTrait,
    request: &LoreRequest<'_>,
) -> Result<Vec<Lorebook>, DbErr> {
    let targets = link_targets(request);
    let mut any = Condition::any();
    for (target, _) in &targets {
        any = any.add(target.condition());
    }
    let links = lorebook_link::Entity::find()
        .filter(any)
        .order_by_asc(lorebook_link::Column::Priority)
        .order_by_asc(lorebook_link::Column::Id)
        .find_also_related(lorebook::Entity)
        .all(db)
        .await?;
    let mut rows: Vec<(LorebookSource, lorebook::Model)> = Vec::new();
    for (target, source) in targets {
        let of_target = links.iter().filter(|(link, _)| target.is_target_of(link));
        let books = of_target.filter_map(|(_, book)| book.clone());
        rows.extend(books.map(|it| (source, it)));
    }
    if let Some(named) = find_card_world(db, request).await? {
        rows.push((LorebookSource::Character, named));
    }
    let mut entries = load_entries(db, rows.iter().map(|(_, it)| it.id)).await?;
    let mut books: Vec<Lorebook> = Vec::new();
    for (source, row) in rows {
        // `remove`: a lorebook that is linked twice counts only where it comes first.
        if let Some(entries) = entries.remove(&row.id) {
            books.push(to_lorebook(&row, source, entries));
        }
    }
    if let Some(own) = request
        .speaker
        .and_then(|it| embedded_lorebook(it.character, it.card))
    {
        let at = books
            .iter()
            .position(|it| it.source == LorebookSource::Character);
        // A card's lorebook that was also imported into the library unchanged counts once.
        books.retain(|it| it.source != LorebookSource::Character || !has_same_entries(it, &own));
        books.insert(at.unwrap_or(books.len()).min(books.len()), own);
    }
    Ok(books)
}

/// Builds a lorebook of the engine from a library row and its entries.
pub fn to_lorebook(
    row: &lorebook::Model,
    source: LorebookSource,
    entries: Vec<LorebookEntry>,
) -> Lorebook {
    build_lorebook(
        &row.document,
        row.id.to_string(),
        row.name.clone(),
        source,
        entries,
        Some(row.id),
    )
}

/// Builds an entry of the engine from its row.
pub fn to_entry(row: &lorebook_entry::Model) -> LorebookEntry {
    entry::read(&row.document, row.id.to_string(), Some(row.id))
}

/// Returns the lorebook embedded in a card, if it has one.
pub fn embedded_lorebook(character: CharacterId, card: &Card) -> Option<Lorebook> {
    let document = card.document.get("data")?.get("character_book")?;
    let stated: Vec<&Value> = match document.get("entries")? {
        Value::Array(entries) => entries.iter().collect(),
        Value::Object(entries) => entries.values().collect(),
        _ => return None,
    };
    let in_world = world_info::is_world_info(stated.iter().copied());
    let of = |(n, it): (usize, &Value)| {
        let of_world = it.as_object();
        let of_world = of_world.filter(|it| world_info::is_world_info_entry(it, in_world));
        match of_world {
            Some(world) => {
                let entry = Value::Object(world_info::from_world_info(world.clone()));
                entry::read(&entry, n.to_string(), None)
            }
            None => entry::read(it, n.to_string(), None),
        }
    };
    let entries: Vec<LorebookEntry> = stated.into_iter().enumerate().map(of).collect();
    if entries.is_empty() {
        return None;
    }
    let stated = lenient_json::text(document.get("name"));
    let name = match stated.trim() {
        "" => card.name().to_owned(),
        stated => stated.chars().take(200).collect(),
    };
    let key = format!("card:{character}");
    Some(build_lorebook(
        document,
        key,
        name,
        LorebookSource::Character,
        entries,
        None,
    ))
}

fn build_lorebook(
    document: &Value,
    key: String,
    name: String,
    source: LorebookSource,
    entries: Vec<LorebookEntry>,
    id: Option<LorebookId>,
) -> Lorebook {
    let number = |field: &str| lenient_json::int(document.get(field));
    Lorebook {
        key,
        id,
        name,
        source,
        scan_depth: number("scan_depth").and_then(|it| usize::try_from(it).ok()),
        // Some tools write 0 for "no limit".
        token_budget: number("token_budget").filter(|it| *it > 0),
        recursive: lenient_json::boolean(document.get("recursive_scanning")),
        entries,
    }
}

fn link_targets(request: &LoreRequest) -> Vec<(LinkTarget, LorebookSource)> {
    let mut targets: Vec<(LinkTarget, LorebookSource)> = Vec::new();
    let conversation = request.conversation.map(LinkTarget::Conversation);
    targets.extend(conversation.map(|it| (it, LorebookSource::Conversation)));
    targets.extend(
        request
            .user_membership
            .map(|it| (LinkTarget::Membership(it), LorebookSource::Persona)),
    );
    let played = request.user_character.map(LinkTarget::Character);
    targets.extend(played.map(|it| (it, LorebookSource::Persona)));
    let space = request.space.map(LinkTarget::Space);
    targets.extend(space.map(|it| (it, LorebookSource::Space)));
    let speaker = request
        .speaker
        .map(|it| LinkTarget::Character(it.character));
    targets.extend(speaker.map(|it| (it, LorebookSource::Character)));
    targets
}

/// Returns the lorebook in the card owner's library with exactly the name in the card's `world`.
async fn find_card_world(
    db: &impl ConnectionTrait,
    request: &LoreRequest<'_>,
) -> Result<Option<lorebook::Model>, DbErr> {
    let Some(speaker) = request.speaker else {
        return Ok(None);
    };
    let data = speaker.card.document.get("data");
    let extensions = data.and_then(|it| it.get("extensions"));
    let world = extensions.and_then(|it| it.get("world"));
    let (Some(owner), Some(name)) = (speaker.owner, world.and_then(Value::as_str)) else {
        return Ok(None);
    };
    if name.trim().is_empty() {
        return Ok(None);
    }
    lorebook::select_for_owner(owner)
        .filter(lorebook::Column::Name.eq(name.trim()))
        .order_by_asc(lorebook::Column::Id)
        .one(db)
        .await
}

/// Returns the entries of each lorebook by position; a lorebook without entries has an empty list.
async fn load_entries(
    db: &impl ConnectionTrait,
    ids: impl Iterator<Item = LorebookId>,
) -> Result<HashMap<LorebookId, Vec<LorebookEntry>>, DbErr> {
    let mut entries: HashMap<LorebookId, Vec<LorebookEntry>> =
        ids.map(|id| (id, Vec::new())).collect();
    if entries.is_empty() {
        return Ok(entries);
    }
    let rows = lorebook_entry::Entity::find()
        .filter(lorebook_entry::Column::LorebookId.is_in(entries.keys().copied()))
        .order_by_asc(lorebook_entry::Column::Position)
        .all(db)
        .await?;
    for row in rows {
        let of_book = entries.entry(row.lorebook_id).or_default();
        of_book.push(to_entry(&row));
    }
    Ok(entries)
}

/// Returns whether two lorebooks have equal entries, wherever they are stored.
fn has_same_entries(one: &Lorebook, other: &Lorebook) -> bool {
    let same =
        |(a, b): (&LorebookEntry, &LorebookEntry)| a.keys == b.keys && a.content == b.content;
    one.entries.len() == other.entries.len() && one.entries.iter().zip(&other.entries).all(same)
}
