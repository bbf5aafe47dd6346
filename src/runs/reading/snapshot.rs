//! Reads a snapshot of a conversation, from which a client shows it or catches up after a
//! disconnect. Also reads its state, its live text, its open approvals and its probable next
//! speaker.

use std::sync::Arc;
use std::time::Duration;

use base::ids::{ConversationId, MembershipId, RunId};
use sea_orm::{ConnectionTrait, DbErr, EntityTrait};
use serde::Serialize;
use utoipa::ToSchema;

use crate::conversations::audience::viewer::Viewer;
use crate::conversations::timeline::TimelinePage;
use crate::conversations::timeline_page::{MessageDetails, PageBudget, TimelineChanges};
use crate::conversations::{conversation, message, timeline, timeline_page};
use crate::db::reading::row_slices;
use crate::memories::memory_settings::SummarySettings;
use crate::memories::summaries::summary;
use crate::regex_scripts::script_cache::ScriptCache;
use crate::runs::engine::RunEngine;
use crate::runs::error::ConversationReadError;
use crate::runs::execution::live_streams::LiveStream;
use crate::runs::reading::views;
use crate::runs::reading::views::{
    ConversationState, ConversationView, RoundDocument, RuntimeView,
};
use crate::runs::scheduling::auto_mode;
use crate::runs::store::run_view::RunDocument;
use crate::runs::store::{run, tool_approval};
use crate::spaces::{membership, space};

/// How many messages a snapshot without `after_rev` has.
const N_NEWEST_MESSAGES: u64 = 50;
/// How long a snapshot waits for a text that another node writes.
const LIVE_TEXT_TIMEOUT: Duration = Duration::from_millis(250);
/// If more messages changed, the snapshot starts over with the newest ones.
const MAX_CHANGES: u64 = 500;

/// A conversation at one `rev`.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Snapshot {
    #[serde(skip)]
    pub rev: i64,
    /// The running run whose stream has begun, whether the viewer sees it or not.
    #[serde(skip)]
    pub running: Option<RunId>,
    /// The existing text that the running run continues.
    #[serde(skip)]
    pub base_text: Option<String>,
    /// If true, the messages are the newest ones, and the client must discard those it has.
    pub reset: bool,
    pub messages: Vec<SnapshotEntry>,
    /// Whether older messages exist. False when the messages are the changed ones.
    pub has_more: bool,
    pub state: ConversationState,
    pub round: Option<RoundDocument>,
    pub queued_run: Option<RunDocument>,
    pub running_run: Option<RunDocument>,
    /// The newest run, if it failed: the one that Retry repeats.
    pub failed_run: Option<RunDocument>,
    /// Pending approvals of tool calls, oldest first.
    pub tool_approvals: Vec<tool_approval::ToolApprovalView>,
    /// Null while auto mode is off.
    pub auto_mode_turns_left: Option<i64>,
    /// The `seq` of the last message that the running summary covers. Null if prompts contain no summary.
    pub summarized_to_seq: Option<i64>,
}

/// A message of a snapshot, or the note that it was hidden.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = SnapshotMessage)]
#[serde(untagged)]
pub enum SnapshotEntry {
    Message(Box<message::MessageView>),
    Gone(message::HiddenMessageView),
}

impl RunEngine {
    /// Returns the conversation's newest messages, or those that changed after `after_rev`, with
    /// its current state, as the viewer sees it. Returns `None` if the conversation does not exist.
    ///
    /// # Errors
    /// Returns the database's error when it fails.
    pub async fn snapshot(
        &self,
        id: ConversationId,
        viewer: Viewer,
        after_rev: Option<i64>,
    ) -> Result<Option<Snapshot>, ConversationReadError> {
        match self.load_snapshot(id, viewer, after_rev, false).await? {
            // With HTML the changes exceed the size limit.
            Some(found) if found.has_more && after_rev.is_some() && !found.reset => {
                self.load_snapshot(id, viewer, after_rev, true).await
            }
            found => Ok(found),
        }
    }

    /// With `reset`, loads the newest messages even if the client has some.
    async fn load_snapshot(
        &self,
        id: ConversationId,
        viewer: Viewer,
        after_rev: Option<i64>,
        reset: bool,
    ) -> Result<Option<Snapshot>, ConversationReadError> {
        let scripts = self.context.prompt_caches.scripts.clone();
        let read = self.context.db.read(move |tx| {
            Box::pin(async move {
                SnapshotData::load(tx, &scripts, (id, viewer), after_rev, reset).await
            })
        });
        let Some(found) = read.await? else {
            return Ok(None);
        };
        let SnapshotData {
            row,
            space,
            base_text,
            runtime,
            tool_approvals,
            reset,
            messages,
            hidden,
            details,
            has_more,
            summarized_to_seq,
        } = found;
        let is_cut = has_more;
        let (views, has_more) = self.render_messages(messages, details).await?;
        let mut entries: Vec<(i64, SnapshotEntry)> = views
            .into_iter()
            .map(|it| (it.seq, SnapshotEntry::Message(Box::new(it))))
            .collect();
        entries.extend(
            hidden
                .into_iter()
                .map(|it| (it.seq, SnapshotEntry::Gone(it))),
        );
        entries.sort_by_key(|(seq, _)| *seq);
        Ok(Some(Snapshot {
            rev: row.rev,
            running: runtime
                .running
                .as_ref()
                .filter(|it| it.speaker_space_membership_id.is_some())
                .map(|it| it.id),
            base_text,
            reset,
            messages: entries.into_iter().map(|(_, entry)| entry).collect(),
            has_more: has_more || is_cut,
            state: runtime.state(),
            round: runtime.round_document(viewer),
            queued_run: views::document(&runtime.queued, viewer),
            running_run: views::document(&runtime.running, viewer),
            failed_run: runtime.failed_run(&row, viewer),
            tool_approvals,
            auto_mode_turns_left: auto_mode::turns_left(&row, &space),
            summarized_to_seq,
        }))
    }

    /// Returns the text so far of what this node is writing in a conversation.
    pub fn live_text(&self, id: ConversationId) -> Option<LiveStream> {
        self.context.live_streams.text(id)
    }

    /// Requests the text so far of another node's run, unless this node has it. If it does not
    /// arrive in time, the client starts without it and receives it later.
    pub async fn fetch_text(&self, id: ConversationId, run: RunId) {
        drop(
            self.context
                .live_streams
                .wait_for_text(id, run, LIVE_TEXT_TIMEOUT)
                .await,
        );
    }

    /// Returns the active round and the runs of a conversation.
    ///
    /// # Errors
    /// Returns the database's error when it fails.
    pub async fn runtime(&self, id: ConversationId) -> Result<RuntimeView, DbErr> {
        let read = self
            .context
            .db
            .read(move |tx| Box::pin(async move { RuntimeView::load(tx, id).await }));
        read.await
    }

    /// Returns the document of a conversation for a viewer.
    ///
    /// # Errors
    /// Returns `RecordNotFound` when the conversation does not exist, or the database's error when
    /// it fails.
    pub async fn conversation_view(
        &self,
        id: ConversationId,
        viewer: Viewer,
    ) -> Result<ConversationView, DbErr> {
        views::load_conversation(&self.context.db, id, viewer).await
    }

    /// Returns the open approvals of a conversation that the viewer sees, oldest first.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn list_open_tool_approvals(
        &self,
        id: ConversationId,
        viewer: Viewer,
    ) -> Result<Vec<tool_approval::ToolApprovalView>, DbErr> {
        let open = tool_approval::list_open(self.context.db.reader(), id, viewer).await?;
        Ok(open.iter().map(tool_approval::Model::view).collect())
    }

    /// Returns who would probably speak if a reply were forced now, without the random choice: the
    /// character after the last speaker that the viewer sees.
    ///
    /// # Errors
    /// Returns the database's error when it fails.
    pub async fn likely_speaker(
        &self,
        id: ConversationId,
        viewer: Viewer,
    ) -> Result<Option<MembershipId>, DbErr> {
        let db = self.context.db.reader();
        let Some(row) = conversation::Entity::find_by_id(id).one(db).await? else {
            return Ok(None);
        };
        let (last, _) = timeline::speakers_seen(db, id, viewer).await?;
        let mut memberships = membership::list_active(db, row.space_id).await?;
        memberships.extend(membership::load_missing(db, row.space_id, &memberships, last).await?);
        let can: Vec<_> = memberships
            .iter()
            .filter(|it| it.can_be_scheduled())
            .collect();
        let position_of = |id: MembershipId| {
            memberships
                .iter()
                .find(|it| it.id == id)
                .map(|it| (it.position, it.id))
        };
        let after = last.and_then(position_of);
        let next = can.iter().find(|it| Some((it.position, it.id)) > after);
        Ok(next.or(can.first()).map(|it| it.id))
    }

    /// Renders the newest of these messages, as many as fit the size limit, in ascending order.
    /// Also returns whether some were left out.
    async fn render_messages(
        &self,
        rows: Vec<message::Model>,
        details: MessageDetails,
    ) -> Result<(Vec<message::MessageView>, bool), ConversationReadError> {
        let markdown = Arc::clone(&self.context.markdown);
        let render = move || {
            let mut budget = PageBudget::new(timeline_page::MAX_BYTES);
            let n_rows = rows.len();
            let views = rows.into_iter().rev();
            let views = views.map(|it| details.view(&it, Some(&markdown)));
            let mut views: Vec<_> = views
                .take_while(|it| budget.try_add(timeline_page::n_json_bytes(it)))
                .collect();
            views.reverse();
            let is_cut = views.len() < n_rows;
            (views, is_cut)
        };
        // Rendering long texts is CPU work and must not block a thread that serves sockets.
        let rendering = self.context.shutdown.main().spawn_blocking(render);
        Ok(rendering.await?)
    }
}

/// The data of a snapshot, read in one transaction.
struct SnapshotData {
    row: conversation::Model,
    space: space::Model,
    base_text: Option<String>,
    runtime: RuntimeView,
    tool_approvals: Vec<tool_approval::ToolApprovalView>,
    reset: bool,
    messages: Vec<message::Model>,
    hidden: Vec<message::HiddenMessageView>,
    details: MessageDetails,
    has_more: bool,
    summarized_to_seq: Option<i64>,
}

impl SnapshotData {
    async fn load(
        tx: &impl ConnectionTrait,
        scripts: &ScriptCache,
        scope: (ConversationId, Viewer),
        after_rev: Option<i64>,
        reset: bool,
    ) -> Result<Option<Self>, DbErr> {
        let (id, viewer) = scope;
        let Some((row, space)) = conversation::find_with_space(tx, id).await? else {
            return Ok(None);
        };
        let runtime = RuntimeView::load(tx, id).await?;
        let running = runtime.running.as_ref();
        let seen = running.filter(|it| viewer.sees(it.audience.as_ref()));
        let base_text = load_base_text(tx, seen).await?;
        let changed = match after_rev {
            Some(rev) if rev <= row.rev && !reset => {
                timeline_page::load_changes_since(tx, scope, rev, MAX_CHANGES).await?
            }
            _ => None,
        };
        let reset = after_rev.is_some() && changed.is_none();
        let (
            TimelineChanges {
                visible: shown,
                hidden,
            },
            has_more,
        ) = match changed {
            Some(changed) => (changed, false),
            None => newest_changes(tx, scope).await?,
        };
        let messages = timeline_page::load_messages(tx, scope, &shown).await?;
        // Only a running run has pending approvals.
        let tool_approvals = match seen {
            Some(_) => tool_approval::list_open(tx, id, viewer).await?,
            None => Vec::new(),
        };
        let summarized_to_seq = match SummarySettings::of_space(&space.settings).is_enabled {
            true => summary::find_end(tx, &row).await?,
            false => None,
        };
        Ok(Some(Self {
            space,
            details: MessageDetails::load(tx, scripts, viewer, &messages).await?,
            tool_approvals: tool_approvals
                .iter()
                .map(tool_approval::Model::view)
                .collect(),
            row,
            base_text,
            runtime,
            reset,
            messages,
            hidden,
            has_more,
            summarized_to_seq,
        }))
    }
}

/// Returns the text of the message that the running run continues.
async fn load_base_text(
    tx: &impl ConnectionTrait,
    running: Option<&run::Model>,
) -> Result<Option<String>, DbErr> {
    let running = running.filter(|it| it.kind == run::RunKind::Continue);
    let Some(target) = running.and_then(|it| it.debug.target_message_id) else {
        return Ok(None);
    };
    Ok(message::find(tx, target).await?.map(|it| it.content))
}

/// Returns the newest messages, and whether older ones exist. Reads no more than can be sent: HTML
/// is about as long as its text.
async fn newest_changes(
    tx: &impl ConnectionTrait,
    scope: (ConversationId, Viewer),
) -> Result<(TimelineChanges, bool), DbErr> {
    let mut shown =
        timeline_page::load_stubs(tx, scope, TimelinePage::Newest, N_NEWEST_MESSAGES).await?;
    let n_found = shown.len();
    shown.truncate(usize::try_from(N_NEWEST_MESSAGES).unwrap_or(usize::MAX));
    let n_fitting = row_slices::n_fitting(&shown, timeline_page::MAX_BYTES as i64 / 2);
    shown.truncate(n_fitting);
    let has_more = shown.len() < n_found;
    let hidden = Vec::new();
    Ok((
        TimelineChanges {
            visible: shown,
            hidden,
        },
        has_more,
    ))
}
