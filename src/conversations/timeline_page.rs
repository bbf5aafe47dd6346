//! Queries the messages of a timeline page, or those changed since a `rev`, and the details needed
//! to show them; limits the size of a page in bytes.
//!
//! **Invariant:** a page has at most [`MAX_BYTES`] of JSON, or a single message. While it is
//! created, only one slice of rows is held in memory in addition, regardless of the number and size
//! of messages.

use std::collections::HashMap;
use std::io::Write;

use base::ids::{ConversationId, MembershipId, MessageId, UserId};
use sea_orm::sea_query::{ExprTrait, SimpleExpr};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select,
};
use serde::Serialize;

use crate::conversations::annotations::bookmark;
use crate::conversations::annotations::message_annotations::MessageAnnotations;
use crate::conversations::audience::message_audience::Audience;
use crate::conversations::audience::viewer::Viewer;
use crate::conversations::display::display_scripts::{DisplayScripts, ShownText};
use crate::conversations::display::markdown::Markdown;
use crate::conversations::display::message_authors;
use crate::conversations::message::{Column, Entity, Model, Visibility};
use crate::conversations::timeline::{TimelinePage, visible};
use crate::conversations::{message, swipe};
use crate::db::reading::row_slices;
use crate::regex_scripts::script_cache::ScriptCache;

/// Maximum size of a page of messages or swipes, or of a socket's snapshot, in bytes of JSON.
pub const MAX_BYTES: usize = 2 * 1024 * 1024;

/// A message whose text is not loaded: its `seq`, and the size of its row in bytes.
pub type Stub = (i64, i64);

/// Returns the messages of a page that the viewer sees, those nearest to its cursor first; one more than
/// `limit` if there are more. For [`TimelinePage::Around`] it returns the half from that `seq` on.
///
/// # Errors
/// Returns the database error if the query fails.
pub async fn load_stubs(
    db: &impl ConnectionTrait,
    (id, viewer): (ConversationId, Viewer),
    page: TimelinePage,
    limit: u64,
) -> Result<Vec<Stub>, DbErr> {
    read_stubs(db, select_page((id, viewer), page), limit).await
}

/// Returns the messages of a page like [`load_stubs`], but only those that a user has marked.
///
/// # Errors
/// Returns the database error if the query fails.
pub async fn load_bookmarked_stubs(
    db: &impl ConnectionTrait,
    (id, viewer): (ConversationId, Viewer),
    page: TimelinePage,
    limit: u64,
    user: UserId,
) -> Result<Vec<Stub>, DbErr> {
    let marked = Column::Id.in_subquery(bookmark::select_messages(user));
    read_stubs(db, select_page((id, viewer), page).filter(marked), limit).await
}

/// Selects the messages of a page, those nearest to its cursor first.
fn select_page((id, viewer): (ConversationId, Viewer), page: TimelinePage) -> Select<Entity> {
    let visible = visible(id, viewer);
    match page {
        TimelinePage::Newest => visible.order_by_desc(Column::Seq),
        TimelinePage::Before(seq) => visible
            .filter(Column::Seq.lt(seq))
            .order_by_desc(Column::Seq),
        TimelinePage::After(seq) => visible
            .filter(Column::Seq.gt(seq))
            .order_by_asc(Column::Seq),
        TimelinePage::Around(seq) => visible
            .filter(Column::Seq.gte(seq))
            .order_by_asc(Column::Seq),
        TimelinePage::Between(after, before) => visible
            .filter(Column::Seq.gt(after))
            .filter(Column::Seq.lt(before))
            .order_by_asc(Column::Seq),
    }
}

async fn read_stubs(
    db: &impl ConnectionTrait,
    query: Select<Entity>,
    limit: u64,
) -> Result<Vec<Stub>, DbErr> {
    let stubs = query
        .select_only()
        .column(Column::Seq)
        .column_as(stored_bytes(), "bytes")
        .limit(limit + 1);
    stubs.into_tuple().all(db).await
}

/// Returns the `seq` of all messages that the viewer sees, ascending.
///
/// # Errors
/// Returns the database error if the query fails.
pub async fn load_seqs(
    db: &impl ConnectionTrait,
    (id, viewer): (ConversationId, Viewer),
) -> Result<Vec<i64>, DbErr> {
    let seqs = visible(id, viewer).select_only().column(Column::Seq);
    seqs.order_by_asc(Column::Seq).into_tuple().all(db).await
}

/// Returns the messages of these stubs that are not hidden and that the viewer sees, ascending.
///
/// # Errors
/// Returns the database error if the query fails.
pub async fn load_messages(
    db: &impl ConnectionTrait,
    (id, viewer): (ConversationId, Viewer),
    stubs: &[Stub],
) -> Result<Vec<Model>, DbErr> {
    let seqs = stubs.iter().map(|(seq, _)| *seq);
    let query = visible(id, viewer).filter(Column::Seq.is_in(seqs));
    query.order_by_asc(Column::Seq).all(db).await
}

/// Returns the expression for the stored size of a message in bytes.
pub fn stored_bytes() -> SimpleExpr {
    row_slices::stored_bytes((Entity, Column::Content))
        .add(row_slices::json_bytes((Entity, Column::Metadata)))
}

/// Changes of a timeline.
#[derive(Debug, Default)]
pub struct TimelineChanges {
    /// Visible messages, ascending.
    pub visible: Vec<Stub>,
    pub hidden: Vec<message::HiddenMessageView>,
}

/// Returns the messages that the viewer sees and that were created, changed or hidden after `rev`. Returns
/// `None` if these are more than `limit` messages or more than [`MAX_BYTES`].
///
/// # Errors
/// Returns the database error if the query fails.
pub async fn load_changes_since(
    db: &impl ConnectionTrait,
    (id, viewer): (ConversationId, Viewer),
    rev: i64,
    limit: u64,
) -> Result<Option<TimelineChanges>, DbErr> {
    let found: Vec<(MessageId, i64, i64, Visibility, i64)> = Entity::find()
        .filter(Column::ConversationId.eq(id))
        .filter(Column::Rev.gt(rev))
        .filter(viewer.condition((Entity, Column::Audience)))
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

/// Data needed to show messages in addition to their rows.
#[derive(Debug)]
pub struct MessageDetails {
    viewer: Viewer,
    /// The number of texts of each message that has several.
    swipes: HashMap<MessageId, i64>,
    names: HashMap<MembershipId, String>,
    annotations: MessageAnnotations,
    scripts: DisplayScripts,
}

impl MessageDetails {
    /// Loads the data for these messages of one conversation, as the viewer sees it.
    ///
    /// # Errors
    /// Returns the database error if a query fails.
    pub async fn load(
        db: &impl ConnectionTrait,
        cache: &ScriptCache,
        viewer: Viewer,
        rows: &[Model],
    ) -> Result<Self, DbErr> {
        let Some(first) = rows.first() else {
            return Ok(Self {
                viewer,
                swipes: HashMap::new(),
                names: HashMap::new(),
                annotations: MessageAnnotations::default(),
                scripts: DisplayScripts::default(),
            });
        };
        let ids: Vec<MessageId> = rows.iter().map(|it| it.id).collect();
        let authors = rows.iter().map(|it| it.space_membership_id);
        let authors = message_authors::load(db, authors).await?;
        let scripts = match authors.space {
            Some(space) => DisplayScripts::load(db, cache, space, first.conversation_id).await?,
            None => DisplayScripts::default(),
        };
        Ok(Self {
            viewer,
            swipes: swipe::count_by_message(db, &ids).await?,
            names: authors.names,
            annotations: MessageAnnotations::load(db, rows).await?,
            scripts,
        })
    }

    /// Returns the audience of the message that a message answers.
    pub fn quoted_audience(&self, row: &Model) -> Option<&Audience> {
        self.annotations.quoted(row.id)?.audience.as_ref()
    }

    /// Returns the message's document, with HTML if a renderer is given.
    pub fn view(&self, row: &Model, markdown: Option<&Markdown>) -> message::MessageView {
        self.view_for(self.viewer, row, markdown)
    }

    /// Returns the message's document like [`Self::view`], for another viewer.
    pub fn view_for(
        &self,
        viewer: Viewer,
        row: &Model,
        markdown: Option<&Markdown>,
    ) -> message::MessageView {
        let name = self.names.get(&row.space_membership_id);
        let n_swipes = self.swipes.get(&row.id).copied().unwrap_or_default();
        let name = name.map_or("", String::as_str);
        let shown = ShownText::of_message(row, name);
        let html = markdown.map(|it| self.scripts.render(it, shown));
        let view = row.view(name, n_swipes, html);
        self.annotations.annotate(view, viewer)
    }
}

/// The remaining size of a page in bytes of JSON.
#[derive(Clone, Copy, Debug)]
pub struct PageBudget {
    remaining: usize,
    is_empty: bool,
}

impl PageBudget {
    /// Creates the budget of a page of at most `max_bytes`.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            remaining: max_bytes,
            is_empty: true,
        }
    }

    /// Returns whether an entry of this size still belongs to the page. The first entry always
    /// does; after one that does not fit, none does.
    pub fn try_add(&mut self, n_bytes: usize) -> bool {
        // 1 for the comma between two entries.
        let left = self.remaining.checked_sub(n_bytes + 1);
        let takes = left.is_some() || self.is_empty;
        self.remaining = left.unwrap_or(0);
        self.is_empty = false;
        takes
    }
}

/// Returns the size of a document as JSON in bytes.
pub fn n_json_bytes(document: &impl Serialize) -> usize {
    let mut counter = ByteCounter(0);
    // The counter cannot fail, and our documents are always serializable.
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
    fn a_page_has_at_least_one_entry_and_ends_at_the_first_that_does_not_fit() {
        let mut small = PageBudget::new(10);
        assert_eq!([100, 1].map(|it| small.try_add(it)), [true, false]);

        let mut large = PageBudget::new(100);
        assert_eq!(
            [40, 40, 40, 1].map(|it| large.try_add(it)),
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
