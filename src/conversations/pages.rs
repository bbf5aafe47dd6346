//! Pages of a timeline, bounded in bytes.
//!
//! **Invariant:** a page has at most [`MAX_BYTES`] of JSON, or one message; while it is made, one
//! slice of rows is held besides, however many and however long the messages are.

use std::collections::HashMap;
use std::io::Write;

use sea_orm::sea_query::{ExprTrait, SimpleExpr};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
};
use serde::Serialize;

use crate::conversations::markdown::Markdown;
use crate::conversations::message::{Column, Entity, Model, Visibility};
use crate::conversations::timeline::{TimelinePage, visible};
use crate::conversations::{message, swipe};
use crate::db::slices;
use crate::ids::{ConversationId, MembershipId, MessageId};
use crate::spaces::membership;

/// The most bytes of JSON in a page of messages, of their texts, or in the window of a socket.
pub const MAX_BYTES: usize = 2 * 1024 * 1024;

/// A message that was not read: its `seq`, and how many bytes it stores.
pub type Stub = (i64, i64);

/// Which messages belong to a page, those nearest to its cursor first; one more than `limit` shows
/// that there are more. Of [`Page::Around`] this is the half from that place on.
///
/// # Errors
/// When the database fails.
pub async fn load_stubs(
    db: &impl ConnectionTrait,
    id: ConversationId,
    page: TimelinePage,
    limit: u64,
) -> Result<Vec<Stub>, DbErr> {
    let query = match page {
        TimelinePage::Newest => visible(id).order_by_desc(Column::Seq),
        TimelinePage::Before(seq) => visible(id)
            .filter(Column::Seq.lt(seq))
            .order_by_desc(Column::Seq),
        TimelinePage::After(seq) => visible(id)
            .filter(Column::Seq.gt(seq))
            .order_by_asc(Column::Seq),
        TimelinePage::Around(seq) => visible(id)
            .filter(Column::Seq.gte(seq))
            .order_by_asc(Column::Seq),
        TimelinePage::Between(after, before) => visible(id)
            .filter(Column::Seq.gt(after))
            .filter(Column::Seq.lt(before))
            .order_by_asc(Column::Seq),
    };
    let stubs = query
        .select_only()
        .column(Column::Seq)
        .column_as(stored_bytes(), "bytes")
        .limit(limit + 1);
    stubs.into_tuple().all(db).await
}

/// The messages with these numbers that are not hidden, ascending.
///
/// # Errors
/// When the database fails.
pub async fn load_messages(
    db: &impl ConnectionTrait,
    id: ConversationId,
    stubs: &[Stub],
) -> Result<Vec<Model>, DbErr> {
    let seqs = stubs.iter().map(|(seq, _)| *seq);
    let query = visible(id).filter(Column::Seq.is_in(seqs));
    query.order_by_asc(Column::Seq).all(db).await
}

/// How many bytes a message stores.
pub fn stored_bytes() -> SimpleExpr {
    slices::stored_bytes((Entity, Column::Content))
        .add(slices::json_bytes((Entity, Column::Metadata)))
}

/// What changed on a timeline.
#[derive(Debug, Default)]
pub struct TimelineChanges {
    /// What can be seen, ascending.
    pub visible: Vec<Stub>,
    pub hidden: Vec<message::HiddenMessageView>,
}

/// Everything created, changed or hidden after `rev`. `None`: more than `limit` messages, or more
/// than [`MAX_BYTES`] of texts.
///
/// # Errors
/// When the database fails.
pub async fn load_changes_since(
    db: &impl ConnectionTrait,
    id: ConversationId,
    rev: i64,
    limit: u64,
) -> Result<Option<TimelineChanges>, DbErr> {
    let found: Vec<(MessageId, i64, i64, Visibility, i64)> = Entity::find()
        .filter(Column::ConversationId.eq(id))
        .filter(Column::Rev.gt(rev))
        .order_by_asc(Column::Seq)
        .select_only()
        .columns([Column::Id, Column::Seq, Column::Rev, Column::Visibility])
        .column_as(stored_bytes(), "bytes")
        .limit(limit + 1)
        .into_tuple()
        .all(db)
        .await?;
    if found.len() as u64 > limit {
        return Ok(None);
    }
    let mut changes = TimelineChanges::default();
    for (id, seq, rev, visibility, bytes) in found {
        match visibility {
            Visibility::Hidden => changes.hidden.push(message::HiddenMessageView {
                id,
                seq,
                visibility,
                rev,
            }),
            Visibility::Normal | Visibility::Excluded => changes.visible.push((seq, bytes)),
        }
    }
    let total: i64 = changes.visible.iter().map(|(_, bytes)| *bytes).sum();
    Ok((total <= MAX_BYTES as i64).then_some(changes))
}

/// What is shown beside the texts of messages.
#[derive(Debug, Default)]
pub struct MessageDetails {
    /// How many texts a message has, where it has several.
    swipes: HashMap<MessageId, i64>,
    names: HashMap<MembershipId, String>,
}

impl MessageDetails {
    /// Reads them.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn load(db: &impl ConnectionTrait, rows: &[Model]) -> Result<Self, DbErr> {
        if rows.is_empty() {
            return Ok(Self::default());
        }
        let ids: Vec<MessageId> = rows.iter().map(|it| it.id).collect();
        let authors = membership::Entity::find()
            .filter(membership::Column::Id.is_in(rows.iter().map(|it| it.space_membership_id)))
            .all(db)
            .await?;
        let names = authors
            .into_iter()
            .map(|it| (it.id, it.cached_display_name));
        Ok(Self {
            swipes: swipe::count_by_message(db, &ids).await?,
            names: names.collect(),
        })
    }

    /// A message as the API shows it, with its HTML if there is something to render it with.
    pub fn view(&self, row: &Model, markdown: Option<&Markdown>) -> message::MessageView {
        let name = self.names.get(&row.space_membership_id);
        let n_swipes = self.swipes.get(&row.id).copied().unwrap_or_default();
        row.view(name.map_or("", String::as_str), n_swipes, markdown)
    }
}

/// How many bytes of JSON a page may still take.
#[derive(Clone, Copy, Debug)]
pub struct PageBudget {
    remaining: usize,
    is_empty: bool,
}

impl PageBudget {
    /// Of a page of at most so many bytes.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            remaining: max_bytes,
            is_empty: true,
        }
    }

    /// Whether an entry of so many bytes still belongs to the page. The first one always does;
    /// after one that does not, none does.
    pub fn try_add(&mut self, n_bytes: usize) -> bool {
        // A comma stands between two entries.
        let left = self.remaining.checked_sub(n_bytes + 1);
        let takes = left.is_some() || self.is_empty;
        self.remaining = left.unwrap_or(0);
        self.is_empty = false;
        takes
    }
}

/// How many bytes a document has as JSON.
pub fn n_json_bytes(document: &impl Serialize) -> usize {
    let mut counter = ByteCounter(0);
    // Counting cannot fail, and our documents can be written.
    let _ = serde_json::to_writer(&mut counter, document);
    counter.0
}

struct ByteCounter(usize);

impl Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{PageBudget, n_json_bytes};

    #[test]
    fn a_page_has_one_entry_however_large_and_none_after_one_that_does_not_fit() {
        let mut tight = PageBudget::new(10);
        assert_eq!([100, 1].map(|it| tight.try_add(it)), [true, false]);

        let mut wide = PageBudget::new(100);
        assert_eq!(
            [40, 40, 40, 1].map(|it| wide.try_add(it)),
            [true, true, false, false]
        );
    }

    #[test]
    fn bytes_are_counted_as_they_are_sent() {
        for text in ["", "plain", "\u{1}\"\n", "月亮"] {
            assert_eq!(
                n_json_bytes(&text),
                serde_json::to_string(text).unwrap().len()
            );
        }
    }
}
