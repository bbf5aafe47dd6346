//! Loads pages of a timeline as JSON: reads, renders and encodes one slice of rows at a time. Also
//! loads single messages.
//!
//! **Invariant:** a page holds only its JSON and one slice of rows in memory: a page of long
//! messages costs no more than its limit, even if many clients read slowly.

use std::sync::Arc;

use base::ids::{ConversationId, MessageId, UserId};
use sea_orm::DbErr;

use crate::conversations::audience::viewer::Viewer;
use crate::conversations::display::markdown::Markdown;
use crate::conversations::timeline::TimelinePage;
use crate::conversations::timeline_page::{MessageDetails, PageBudget, Stub};
use crate::conversations::{message, timeline_page};
use crate::db::reading::row_slices;
use crate::runs::engine::RunEngine;
use crate::runs::error::ConversationReadError;

/// Bytes reserved for the JSON around the entries of a list.
const FRAME_BYTES: usize = 64;

/// A page of a timeline, in ascending order.
#[derive(Debug, Default)]
pub struct MessagePage {
    /// Messages as JSON.
    pub entries: Vec<String>,
    /// Whether more messages exist in the requested direction; for [`TimelinePage::Around`], in
    /// either.
    pub has_more: bool,
    /// The `seq` from which the next page in the same direction continues; `None` for
    /// [`TimelinePage::Around`].
    pub cursor: Option<i64>,
}

/// Which page of a timeline to load, and how to show it.
#[derive(Clone, Copy, Debug)]
pub struct MessageQuery {
    pub page: TimelinePage,
    /// Maximum number of messages.
    pub limit: u64,
    /// Whether each message includes its HTML.
    pub html: bool,
    pub viewer: Viewer,
    /// If set, only the messages that this user has marked.
    pub bookmarked_by: Option<UserId>,
}

impl MessageQuery {
    fn is_backwards(&self) -> bool {
        matches!(self.page, TimelinePage::Newest | TimelinePage::Before(_))
    }
}

impl RunEngine {
    /// Returns a page of a timeline with at most [`timeline_page::MAX_BYTES`] of JSON, or one
    /// message if that is longer.
    ///
    /// # Errors
    /// Returns the database's error when it fails.
    pub async fn list_messages(
        &self,
        id: ConversationId,
        query: MessageQuery,
    ) -> Result<MessagePage, ConversationReadError> {
        let max_bytes = timeline_page::MAX_BYTES - FRAME_BYTES;
        let TimelinePage::Around(seq) = query.page else {
            return self.load_part(id, query, max_bytes).await;
        };
        let half = query.limit / 2;
        let before = MessageQuery {
            page: TimelinePage::Before(seq),
            limit: half,
            ..query
        };
        let after = MessageQuery {
            limit: query.limit - half,
            ..query
        };
        let before = self.load_part(id, before, max_bytes / 2).await?;
        let after = self.load_part(id, after, max_bytes / 2).await?;
        let mut entries = before.entries;
        entries.extend(after.entries);
        Ok(MessagePage {
            entries,
            has_more: before.has_more || after.has_more,
            cursor: None,
        })
    }

    /// Returns a message with its HTML, or `None` if it is hidden, does not exist, or is not for the
    /// viewer.
    ///
    /// # Errors
    /// Returns the database's error when it fails.
    pub async fn find_message(
        &self,
        viewer: Viewer,
        id: MessageId,
    ) -> Result<Option<message::MessageView>, ConversationReadError> {
        let scripts = self.context.prompt_caches.scripts.clone();
        let read = self.context.db.read(move |tx| {
            Box::pin(async move {
                let found = message::find(tx, id).await?;
                let shown = found.filter(|it| {
                    it.visibility != message::Visibility::Hidden
                        && viewer.sees(it.audience.as_ref())
                });
                let rows: Vec<message::Model> = shown.into_iter().collect();
                let details = MessageDetails::load(tx, &scripts, viewer, &rows).await?;
                Ok::<_, DbErr>((rows, details))
            })
        });
        let (rows, details) = read.await?;
        let markdown = Arc::clone(&self.context.markdown);
        let render = move || rows.first().map(|it| details.view(it, Some(&markdown)));
        let rendering = self.context.shutdown.main().spawn_blocking(render);
        Ok(rendering.await?)
    }

    async fn load_part(
        &self,
        id: ConversationId,
        query: MessageQuery,
        max_bytes: usize,
    ) -> Result<MessagePage, ConversationReadError> {
        let MessageQuery {
            page,
            limit,
            viewer,
            ..
        } = query;
        let scope = (id, viewer);
        let db = self.context.db.reader();
        let mut stubs = match query.bookmarked_by {
            Some(user) => {
                timeline_page::load_bookmarked_stubs(db, scope, page, limit, user).await?
            }
            None => timeline_page::load_stubs(db, scope, page, limit).await?,
        };
        let n_found = stubs.len();
        stubs.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let mut found = MessagePage {
            has_more: stubs.len() < n_found,
            ..Default::default()
        };
        let mut budget = PageBudget::new(max_bytes);
        for slice in row_slices::split_into_slices(&stubs, row_slices::SLICE_BYTES) {
            let (encoded, left) = self.load_encoded(id, slice.to_vec(), query, budget).await?;
            // Messages that were hidden after the stubs were read are missing in `encoded`.
            let last = match left {
                Some(_) => slice.last().map(|(seq, _)| *seq),
                None => encoded.last().map(|(seq, _)| *seq),
            };
            found.cursor = last.or(found.cursor);
            found.entries.extend(encoded.into_iter().map(|(_, it)| it));
            match left {
                Some(left) => budget = left,
                None => {
                    found.has_more = true;
                    break;
                }
            }
        }
        if query.is_backwards() {
            found.entries.reverse();
        }
        Ok(found)
    }

    /// Returns these messages as JSON, the nearest to the cursor first, and the remaining budget,
    /// or `None` instead of the budget if not all of them fit.
    async fn load_encoded(
        &self,
        id: ConversationId,
        slice: Vec<Stub>,
        query: MessageQuery,
        mut budget: PageBudget,
    ) -> Result<(Vec<(i64, String)>, Option<PageBudget>), ConversationReadError> {
        let viewer = query.viewer;
        let scripts = self.context.prompt_caches.scripts.clone();
        let read = self.context.db.read(move |tx| {
            Box::pin(async move {
                let rows = timeline_page::load_messages(tx, (id, viewer), &slice).await?;
                let details = MessageDetails::load(tx, &scripts, viewer, &rows).await?;
                Ok::<_, DbErr>((rows, details))
            })
        });
        let (mut rows, details) = read.await?;
        if query.is_backwards() {
            rows.reverse();
        }
        let markdown = query.html.then(|| Arc::clone(&self.context.markdown));
        let encode = move || -> Result<_, serde_json::Error> {
            let mut encoded = Vec::with_capacity(rows.len());
            for row in rows {
                let seq = row.seq;
                let json = encode(row, &details, markdown.as_deref())?;
                if !budget.try_add(json.len()) {
                    return Ok((encoded, None));
                }
                encoded.push((seq, json));
            }
            Ok((encoded, Some(budget)))
        };
        // Rendering long texts is CPU work and must not block a thread of the web server.
        let encoding = self.context.shutdown.main().spawn_blocking(encode);
        Ok(encoding.await??)
    }
}

fn encode(
    row: message::Model,
    details: &MessageDetails,
    markdown: Option<&Markdown>,
) -> Result<String, serde_json::Error> {
    let mut json = serde_json::to_string(&details.view(&row, markdown))?;
    // Kept in memory until a slow client has read it.
    json.shrink_to_fit();
    Ok(json)
}
