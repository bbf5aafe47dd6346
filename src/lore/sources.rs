//! Which books take part in a turn: the only I/O of this room beside its tables.

use crate::characters::card::Card;
use crate::ids::CharacterId;
use crate::ids::ConversationId;
use crate::ids::LorebookId;
use crate::ids::MembershipId;
use crate::ids::SpaceId;
use crate::ids::UserId;
use crate::lore::book::Book;
use crate::lore::book::Entry;
use crate::lore::book::Source;
use crate::lore::convert;
use crate::lore::entry;
use crate::lore::loose;
use crate::lore::lorebook;
use crate::lore::lorebook_entry;
use crate::lore::lorebook_link;
use crate::lore::lorebook_link::Place;
use sea_orm::ColumnTrait;
use sea_orm::Condition;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::QueryFilter;
use sea_orm::QueryOrder;
use serde_json::Value;
use std::collections::HashMap;

/// A turn, as far as it decides which books take part.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// `None`: nobody keeps what is said.
    pub conversation: Option<ConversationId>,
    /// `None`: the speaker is by itself.
    pub space: Option<SpaceId>,
    /// The seat of whom `{{user}}` means.
    pub user_seat: Option<MembershipId>,
    /// The character that `{{user}}` plays, if any.
    pub user_character: Option<CharacterId>,
    /// Who speaks.
    pub speaker: Option<Speaker<'a>>,
}

/// The character who speaks.
#[derive(Clone, Copy, Debug)]
pub struct Speaker<'a> {
    pub character: CharacterId,
    pub owner: Option<UserId>,
    pub card: &'a Card,
}

/// The books of a turn by precedence: of the conversation, the persona, the space; embedded in the
/// speaker's card, linked to the speaker, named by the card.
///
/// # Errors
/// When the database fails.
pub async fn load(db: &impl ConnectionTrait, turn: &Turn<'_>) -> Result<Vec<Book>, DbErr> {
    let places = places(turn);
    let mut any = Condition::any();
    for (place, _) in &places {
        any = any.add(place.condition());
    }
    let links = lorebook_link::Entity::find()
        .filter(any)
        .order_by_asc(lorebook_link::Column::Priority)
        .order_by_asc(lorebook_link::Column::Id)
        .find_also_related(lorebook::Entity)
        .all(db)
        .await?;
    let mut rows: Vec<(Source, lorebook::Model)> = Vec::new();
    for (place, source) in places {
        let of_place = links.iter().filter(|(link, _)| place.has(link));
        let books = of_place.filter_map(|(_, book)| book.clone());
        rows.extend(books.map(|it| (source, it)));
    }
    if let Some(named) = named_by_card(db, turn).await? {
        rows.push((Source::Character, named));
    }
    let mut entries = entries_of(db, rows.iter().map(|(_, it)| it.id)).await?;
    let mut books: Vec<Book> = Vec::new();
    for (source, row) in rows {
        // Linked twice, it counts where it comes first.
        if let Some(entries) = entries.remove(&row.id) {
            books.push(book_of(&row, source, entries));
        }
    }
    if let Some(own) = turn.speaker.and_then(|it| embedded(it.character, it.card)) {
        let at = books.iter().position(|it| it.source == Source::Character);
        // A card's book that was also put on the shelf as it is counts once.
        books.retain(|it| it.source != Source::Character || !says_the_same(it, &own));
        books.insert(at.unwrap_or(books.len()).min(books.len()), own);
    }
    Ok(books)
}

/// One book of the shelf.
pub fn book_of(row: &lorebook::Model, source: Source, entries: Vec<Entry>) -> Book {
    shelved(
        &row.document,
        row.id.to_string(),
        row.name.clone(),
        source,
        entries,
        Some(row.id),
    )
}

/// The entry of a row.
pub fn entry_of(row: &lorebook_entry::Model) -> Entry {
    entry::read(&row.document, row.id.to_string(), Some(row.id))
}

/// The book in a card, if it has one.
pub fn embedded(character: CharacterId, card: &Card) -> Option<Book> {
    let document = card.document.get("data")?.get("character_book")?;
    let stated: Vec<&Value> = match document.get("entries")? {
        Value::Array(entries) => entries.iter().collect(),
        Value::Object(entries) => entries.values().collect(),
        _ => return None,
    };
    let in_world = convert::is_world(stated.iter().copied());
    let of = |(n, it): (usize, &Value)| {
        let of_world = it.as_object();
        let of_world = of_world.filter(|it| convert::is_of_world(it, in_world));
        match of_world {
            Some(world) => {
                let entry = Value::Object(convert::from_world(world.clone()));
                entry::read(&entry, n.to_string(), None)
            }
            None => entry::read(it, n.to_string(), None),
        }
    };
    let entries: Vec<Entry> = stated.into_iter().enumerate().map(of).collect();
    if entries.is_empty() {
        return None;
    }
    let stated = loose::text(document.get("name"));
    let name = match stated.trim() {
        "" => card.name().to_owned(),
        stated => stated.chars().take(200).collect(),
    };
    let key = format!("card:{character}");
    Some(shelved(
        document,
        key,
        name,
        Source::Character,
        entries,
        None,
    ))
}

fn shelved(
    document: &Value,
    key: String,
    name: String,
    source: Source,
    entries: Vec<Entry>,
    id: Option<LorebookId>,
) -> Book {
    let number = |field: &str| loose::int(document.get(field));
    Book {
        key,
        id,
        name,
        source,
        scan_depth: number("scan_depth").and_then(|it| usize::try_from(it).ok()),
        // Nothing at all is what tools write that mean no limit.
        token_budget: number("token_budget").filter(|it| *it > 0),
        recursive: loose::truth(document.get("recursive_scanning")),
        entries,
    }
}

fn places(turn: &Turn) -> Vec<(Place, Source)> {
    let mut places: Vec<(Place, Source)> = Vec::new();
    let conversation = turn.conversation.map(Place::Conversation);
    places.extend(conversation.map(|it| (it, Source::Conversation)));
    places.extend(turn.user_seat.map(|it| (Place::Seat(it), Source::Persona)));
    let played = turn.user_character.map(Place::Character);
    places.extend(played.map(|it| (it, Source::Persona)));
    let space = turn.space.map(Place::Space);
    places.extend(space.map(|it| (it, Source::Space)));
    let speaker = turn.speaker.map(|it| Place::Character(it.character));
    places.extend(speaker.map(|it| (it, Source::Character)));
    places
}

/// The world that a card names, found by exactly that name on the shelf of the card's owner.
async fn named_by_card(
    db: &impl ConnectionTrait,
    turn: &Turn<'_>,
) -> Result<Option<lorebook::Model>, DbErr> {
    let Some(speaker) = turn.speaker else {
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
    lorebook::of_owner(owner)
        .filter(lorebook::Column::Name.eq(name.trim()))
        .order_by_asc(lorebook::Column::Id)
        .one(db)
        .await
}

/// The entries of these books, as they are written; a book without any is there with none.
async fn entries_of(
    db: &impl ConnectionTrait,
    ids: impl Iterator<Item = LorebookId>,
) -> Result<HashMap<LorebookId, Vec<Entry>>, DbErr> {
    let mut entries: HashMap<LorebookId, Vec<Entry>> = ids.map(|id| (id, Vec::new())).collect();
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
        of_book.push(entry_of(&row));
    }
    Ok(entries)
}

/// Do two books have the same entries, wherever they are kept?
fn says_the_same(one: &Book, other: &Book) -> bool {
    let same = |(a, b): (&Entry, &Entry)| a.keys == b.keys && a.content == b.content;
    one.entries.len() == other.entries.len() && one.entries.iter().zip(&other.entries).all(same)
}
