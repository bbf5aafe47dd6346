//! Loads the lorebooks that a prompt uses: those linked to its conversation, persona, space and
//! characters, those embedded in the cards of these characters, and those that the cards name.

use std::collections::{HashMap, HashSet};

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
    /// The characters whose cards the prompt includes, by precedence: the speaker first. One that is a
    /// member twice counts once.
    pub characters: &'a [LoreCharacter<'a>],
}

/// A character whose card a prompt includes.
#[derive(Clone, Copy, Debug)]
pub struct LoreCharacter<'a> {
    pub character: CharacterId,
    pub owner: Option<UserId>,
    pub card: &'a Card,
}

/// A lorebook that takes part in a prompt. The entries of rows are loaded later.
enum ActiveLorebook {
    Row(lorebook::Model),
    Embedded(Lorebook),
}

/// Returns the lorebooks of a prompt by precedence: linked to the conversation, the persona, the
/// space; then, for each character, embedded in its card, linked to it, named by the card.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn load(
    db: &impl ConnectionTrait,
    request: &LoreRequest<'_>,
) -> Result<Vec<Lorebook>, DbErr> {
    let active = load_active(db, request).await?;
    let rows = active.iter().filter_map(|(_, it)| match it {
        ActiveLorebook::Row(row) => Some(row.id),
        ActiveLorebook::Embedded(_) => None,
    });
    let mut entries = load_entries(db, rows).await?;
    let mut books: Vec<Lorebook> = Vec::new();
    for (source, active) in active {
        let book = match active {
            ActiveLorebook::Embedded(book) => Some(book),
            // `remove`: a lorebook that is linked twice counts only where it comes first.
            ActiveLorebook::Row(row) => entries
                .remove(&row.id)
                .map(|entries| to_lorebook(&row, source, entries)),
        };
        books.extend(book.filter(|it| !is_copy(it, &books)));
    }
    Ok(books)
}

/// Returns the lorebooks by precedence, with the reason why each takes part. A row may occur several times.
async fn load_active(
    db: &impl ConnectionTrait,
    request: &LoreRequest<'_>,
) -> Result<Vec<(LorebookSource, ActiveLorebook)>, DbErr> {
    let mut seen = HashSet::new();
    let characters = request.characters.iter().copied();
    let characters: Vec<LoreCharacter<'_>> =
        characters.filter(|it| seen.insert(it.character)).collect();
    let targets = link_targets(request);
    let mut any = Condition::any();
    for (target, _) in &targets {
        any = any.add(target.condition());
    }
    let ids = characters.iter().map(|it| it.character);
    let links = lorebook_link::Entity::find()
        .filter(any.add(lorebook_link::Column::CharacterId.is_in(ids)))
        .order_by_asc(lorebook_link::Column::Priority)
        .order_by_asc(lorebook_link::Column::Id)
        .find_also_related(lorebook::Entity)
        .all(db)
        .await?;
    let linked_to = |target: LinkTarget| {
        let of_target = links
            .iter()
            .filter(move |(link, _)| target.is_target_of(link));
        of_target.filter_map(|(_, book)| book.clone().map(ActiveLorebook::Row))
    };
    let named = find_card_worlds(db, &characters).await?;
    let mut active = Vec::new();
    for (target, source) in targets {
        active.extend(linked_to(target).map(|it| (source, it)));
    }
    for it in characters {
        let embedded = embedded_lorebook(it.character, it.card).map(ActiveLorebook::Embedded);
        let named = named.get(&it.character).cloned().map(ActiveLorebook::Row);
        let all = embedded
            .into_iter()
            .chain(linked_to(LinkTarget::Character(it.character)))
            .chain(named);
        active.extend(all.map(|it| (LorebookSource::Character, it)));
    }
    Ok(active)
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
    targets
}

/// Returns, for each character, the lorebook in the library of the card's owner with exactly the name in
/// the card's `world`.
async fn find_card_worlds(
    db: &impl ConnectionTrait,
    characters: &[LoreCharacter<'_>],
) -> Result<HashMap<CharacterId, lorebook::Model>, DbErr> {
    let named = characters.iter();
    let named = named.filter_map(|it| Some((it.character, it.owner?, world_name(it.card)?)));
    let named: Vec<(CharacterId, UserId, &str)> = named.collect();
    if named.is_empty() {
        return Ok(HashMap::new());
    }
    let mut any = Condition::any();
    for (_, owner, name) in &named {
        let both = Condition::all()
            .add(lorebook::Column::OwnerId.eq(*owner))
            .add(lorebook::Column::Name.eq(*name));
        any = any.add(both);
    }
    let rows = lorebook::Entity::find()
        .filter(any)
        .order_by_asc(lorebook::Column::Id)
        .all(db)
        .await?;
    let worlds = named.into_iter().filter_map(|(character, owner, name)| {
        let mut rows = rows.iter();
        let row = rows.find(|it| it.owner_id == Some(owner) && it.name == name)?;
        Some((character, row.clone()))
    });
    Ok(worlds.collect())
}

/// Returns the name in the `world` of a card, unless it is blank.
fn world_name(card: &Card) -> Option<&str> {
    let extensions = card.document.get("data")?.get("extensions")?;
    let name = extensions.get("world")?.as_str()?.trim();
    (!name.is_empty()).then_some(name)
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

/// Returns whether a lorebook of a character has the same entries as an earlier one, and one of the two is
/// embedded in a card: the unchanged library copy of a card's lorebook is not scanned again, wherever it is
/// linked, and neither is a lorebook that several cards contain.
fn is_copy(book: &Lorebook, earlier: &[Lorebook]) -> bool {
    let is_same = |it: &Lorebook| {
        let is_embedded = it.id.is_none() || book.id.is_none();
        is_embedded && has_same_entries(it, book)
    };
    book.source == LorebookSource::Character && earlier.iter().any(is_same)
}

/// Returns whether two lorebooks have equal entries, wherever they are stored.
fn has_same_entries(one: &Lorebook, other: &Lorebook) -> bool {
    let same =
        |(a, b): (&LorebookEntry, &LorebookEntry)| a.keys == b.keys && a.content == b.content;
    one.entries.len() == other.entries.len() && one.entries.iter().zip(&other.entries).all(same)
}
