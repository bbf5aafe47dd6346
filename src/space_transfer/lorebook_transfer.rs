//! Exports and imports the lorebooks of a space with their entries and links, and validates
//! imported ones.

use std::collections::{BTreeMap, HashMap, HashSet};

use base::clock::Timestamp;
use base::display_name;
use base::ids::{CharacterId, LorebookId, SpaceId, UserId};
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, QueryFilter,
    QueryOrder, QuerySelect,
};
use serde_json::{Value, json};
use tavern::lorebook_files::file;

use crate::conversations::chats::import_writer::ChatImportError;
use crate::conversations::conversation;
use crate::lorebooks::lorebook_link::LinkTarget;
use crate::lorebooks::{lorebook, lorebook_entry, lorebook_link};
use crate::space_transfer::document;
use crate::space_transfer::document::ExportedLorebookTarget;
use crate::space_transfer::import_data::{
    ArchivedLorebook, FileHead, IdMap, invalid_file, object_or_empty,
};
use crate::space_transfer::import_lore_state::EntryKeys;
use crate::spaces::membership;

/// Links per statement.
const LINKS_PER_STATEMENT: usize = 500;

/// Which linked lorebooks are exported: all for an admin, only their own for a user.
#[derive(Clone, Copy, Debug)]
pub enum VisibleLorebooks {
    Admin,
    User(UserId),
}

/// Returns the lorebooks linked to a space, its conversations, characters and memberships.
///
/// # Errors
/// Returns `DbErr` when the database fails.
pub async fn export(
    db: &impl ConnectionTrait,
    visible: VisibleLorebooks,
    space: SpaceId,
    memberships: &[membership::Model],
    conversations: &[conversation::Model],
) -> Result<
    (
        Vec<document::ExportedLorebook>,
        Vec<document::ExportedLorebookLink>,
    ),
    DbErr,
> {
    use lorebook_link::Column as Link;
    let is_linked = Condition::any()
        .add(Link::SpaceId.eq(space))
        .add(Link::ConversationId.is_in(conversations.iter().map(|it| it.id)))
        .add(Link::CharacterId.is_in(memberships.iter().filter_map(|it| it.character_id)))
        .add(Link::SpaceMembershipId.is_in(memberships.iter().map(|it| it.id)));
    let found = lorebook_link::Entity::find()
        .filter(is_linked)
        .order_by_asc(Link::Id)
        .find_also_related(lorebook::Entity)
        .all(db)
        .await?;
    let mut books = BTreeMap::new();
    let mut links = Vec::new();
    for (link, book) in found {
        let may_read = |it: &lorebook::Model| match visible {
            VisibleLorebooks::Admin => true,
            VisibleLorebooks::User(id) => it.owner_id == Some(id),
        };
        if let (Some(book), Some(target)) = (book.filter(may_read), link_target(&link)) {
            links.push(document::ExportedLorebookLink {
                book: book.id.0,
                priority: link.priority,
                place: target,
            });
            books.insert(book.id.0, book);
        }
    }
    let mut entries = load_entries(db, books.values()).await?;
    let books = books.into_values().map(|it| {
        let (entry_keys, entries) = entries.remove(&it.id).unwrap_or_default();
        document::ExportedLorebook {
            key: it.id.0,
            entries,
            entry_keys,
            name: it.name,
            document: it.document,
            created_at: it.created_at,
        }
    });
    Ok((books.collect(), links))
}

async fn load_entries(
    db: &impl ConnectionTrait,
    books: impl Iterator<Item = &lorebook::Model>,
) -> Result<HashMap<LorebookId, (Vec<i64>, Vec<Value>)>, DbErr> {
    use lorebook_entry::Column;
    let rows = lorebook_entry::Entity::find()
        .filter(Column::LorebookId.is_in(books.map(|it| it.id)))
        .order_by_asc(Column::LorebookId)
        .order_by_asc(Column::Position)
        .all(db)
        .await?;
    let mut entries: HashMap<LorebookId, (Vec<i64>, Vec<Value>)> = HashMap::new();
    for row in rows {
        let (keys, documents) = entries.entry(row.lorebook_id).or_default();
        keys.push(row.id.0);
        documents.push(row.document);
    }
    Ok(entries)
}

fn link_target(link: &lorebook_link::Model) -> Option<ExportedLorebookTarget> {
    let conversation = link
        .conversation_id
        .map(|it| ExportedLorebookTarget::Conversation(it.0));
    let character = link
        .character_id
        .map(|it| ExportedLorebookTarget::Character(it.0));
    let membership = link
        .space_membership_id
        .map(|it| ExportedLorebookTarget::Seat(it.0));
    let space = link.space_id.map(|_| ExportedLorebookTarget::Space);
    space.or(conversation).or(character).or(membership)
}

/// Parses a lorebook like a separate import. Returns `None` if it is invalid or exceeds a limit.
pub fn parse(book: document::ExportedLorebook) -> Option<ArchivedLorebook> {
    let mut document = object_or_empty(&book.document);
    document["name"] = json!(display_name::truncate(&book.name, file::MAX_NAME_CHARS)?);
    document["entries"] = Value::Array(book.entries);
    let draft = file::from_value(document, "").ok()?;
    Some(ArchivedLorebook {
        key: book.key,
        draft,
        entry_keys: book.entry_keys,
        created_at: book.created_at,
    })
}

/// Returns whether every lorebook is linked at most once to each target, within the limit per
/// target.
pub fn are_links_valid(links: &[document::ExportedLorebookLink]) -> bool {
    let mut seen = HashSet::new();
    let mut n_books: HashMap<ExportedLorebookTarget, usize> = HashMap::new();
    links.iter().all(|it| {
        let n_books = n_books.entry(it.place).or_default();
        *n_books += 1;
        *n_books <= lorebook_link::MAX_LINKS && seen.insert((it.book, it.place))
    })
}

/// Creates the lorebooks in the new owner's library, and their links. Returns the new keys of their
/// entries.
///
/// # Errors
/// Returns an error if the target of a link is missing, or the database fails.
pub async fn create_all(
    tx: &impl ConnectionTrait,
    owner: UserId,
    hidden: SpaceId,
    head: &FileHead,
    ids: &IdMap,
    character_ids: &HashMap<i64, CharacterId>,
    now: Timestamp,
) -> Result<EntryKeys, ChatImportError> {
    let mut books = HashMap::new();
    let mut keys = EntryKeys::default();
    for it in &head.lorebooks {
        let row = lorebook::ActiveModel {
            id: NotSet,
            owner_id: Set(Some(owner)),
            name: Set(it.draft.name.clone()),
            document: Set(Value::Object(it.draft.document.clone())),
            created_at: Set(it.created_at),
            updated_at: Set(now),
        };
        let created = row.insert(tx).await?;
        lorebook_entry::append(tx, created.id, 0, it.draft.entries.clone()).await?;
        books.insert(it.key, created.id);
        let entry_ids = lorebook_entry::Entity::find()
            .select_only()
            .column(lorebook_entry::Column::Id)
            .filter(lorebook_entry::Column::LorebookId.eq(created.id))
            .order_by_asc(lorebook_entry::Column::Position);
        let stored_ids: Vec<i64> = entry_ids.into_tuple().all(tx).await?;
        let renamed = it.entry_keys.iter().zip(stored_ids);
        keys.by_old_key.extend(renamed.map(|(old, new)| {
            let (book, old_book) = (created.id, it.key);
            (format!("{old_book}.{old}"), format!("{book}.{new}"))
        }));
    }
    let mut links = Vec::new();
    for link in &head.lorebook_links {
        let target = match link.place {
            ExportedLorebookTarget::Space => Some(LinkTarget::Space(hidden)),
            ExportedLorebookTarget::Conversation(key) => ids
                .conversations
                .get(&key)
                .map(|it| LinkTarget::Conversation(*it)),
            ExportedLorebookTarget::Character(key) => {
                character_ids.get(&key).map(|it| LinkTarget::Character(*it))
            }
            ExportedLorebookTarget::Seat(key) => ids
                .memberships
                .get(&key)
                .map(|it| LinkTarget::Membership(*it)),
        };
        let (Some(book), Some(place)) = (books.get(&link.book), target) else {
            return Err(invalid_file(document::LOREBOOK_LINKS));
        };
        links.push(place.new_link(*book, link.priority));
    }
    for piece in links.chunks(LINKS_PER_STATEMENT) {
        lorebook_link::Entity::insert_many(piece.to_vec())
            .exec_without_returning(tx)
            .await?;
    }
    Ok(keys)
}
