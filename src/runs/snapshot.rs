//! Reading: what a client needs to show a conversation, and to catch up after any pause.

use crate::conversations::conversation;
use crate::conversations::message;
use crate::conversations::swipe;
use crate::conversations::timeline;
use crate::conversations::timeline::Page;
use crate::ids::ConversationId;
use crate::ids::MembershipId;
use crate::ids::MessageId;
use crate::ids::RunId;
use crate::rounds::round;
use crate::rounds::slot;
use crate::runs::auto_mode;
use crate::runs::engine::Engine;
use crate::runs::live::LiveText;
use crate::runs::run;
use crate::runs::situation;
use crate::runs::situation::Round;
use crate::runs::situation::State;
use crate::runs::tool_approval;
use crate::runs::views;
use crate::runs::views::ConversationView;
use crate::runs::views::RoundView;
use crate::runs::views::Runtime;
use crate::spaces::membership;
use crate::spaces::space;
use sea_orm::ColumnTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::QueryFilter;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;

/// How many messages a client starts with.
const NEWEST: u64 = 50;
/// How long a snapshot waits for a text that another node writes.
const PATIENCE: Duration = Duration::from_millis(250);
/// More changes than this are a new start.
const MOST_CHANGES: u64 = 500;

/// A conversation at one `rev`.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Snapshot {
    #[serde(skip)]
    pub rev: i64,
    /// The messages are the newest ones, and what the client had is void.
    pub reset: bool,
    pub messages: Vec<Entry>,
    pub state: State,
    pub round: Option<RoundView>,
    pub queued_run: Option<run::View>,
    pub running_run: Option<run::View>,
    /// What waits for the moderators, oldest first.
    pub tool_approvals: Vec<tool_approval::View>,
    /// Null while auto mode is off.
    pub auto_mode_turns_left: Option<i64>,
}

/// A message of a snapshot, or that it is gone.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = SnapshotMessage)]
#[serde(untagged)]
pub enum Entry {
    Message(Box<message::View>),
    Gone(message::Gone),
}

impl Engine {
    /// The conversation as it is now: its newest messages, or what changed after `after_rev`.
    /// `None`: there is no such conversation.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn snapshot(
        &self,
        id: ConversationId,
        after_rev: Option<i64>,
    ) -> Result<Option<Snapshot>, DbErr> {
        let db = self.context.db.reader();
        let Some(row) = conversation::Entity::find_by_id(id).one(db).await? else {
            return Ok(None);
        };
        // The row was read first: whatever is newer than its `rev` comes as an event as well.
        let runtime = self.runtime(id).await?;
        let changed = match after_rev {
            Some(rev) if rev <= row.rev => {
                Some(timeline::changed_since(db, id, rev, MOST_CHANGES).await?)
            }
            _ => None,
        };
        let changed = changed.filter(|it| it.len() as u64 <= MOST_CHANGES);
        let space = space::Entity::find_by_id(row.space_id).one(db).await?;
        let reset = after_rev.is_some() && changed.is_none();
        // Only who is speaking asks.
        let tool_approvals = match &runtime.running {
            Some(_) => self.tool_approvals(id).await?,
            None => Vec::new(),
        };
        let messages = match changed {
            Some(changed) => changed,
            None => timeline::page(db, id, Page::Newest, NEWEST).await?.0,
        };
        Ok(Some(Snapshot {
            rev: row.rev,
            reset,
            messages: self.entries(messages).await?,
            state: runtime.state(),
            round: runtime.round.as_ref().map(Round::view),
            queued_run: run::Model::view_of(&runtime.queued),
            running_run: run::Model::view_of(&runtime.running),
            tool_approvals,
            auto_mode_turns_left: space.and_then(|it| auto_mode::turns_left(&row, &it)),
        }))
    }

    /// The text so far of what this node is writing in a conversation.
    pub fn live_text(&self, id: ConversationId) -> Option<LiveText> {
        self.context.live.text(id)
    }

    /// Has the text so far of a run of another node sent here, unless this node knows it. Without
    /// it a listener begins with none, and sees it as soon as it comes.
    pub async fn fetch_text(&self, id: ConversationId, run: RunId) {
        drop(self.context.live.wait_for_text(id, run, PATIENCE).await);
    }

    /// What a conversation is doing.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn runtime(&self, id: ConversationId) -> Result<Runtime, DbErr> {
        let db = self.context.db.reader();
        let (queued, running) = run::active_in(db, id).await?;
        Ok(Runtime {
            round: situation::active_round(db, id).await?,
            queued,
            running,
        })
    }

    /// The documents of some conversations of one space, in their order.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn conversations(
        &self,
        rows: &[conversation::Model],
        space: &space::Model,
    ) -> Result<Vec<ConversationView>, DbErr> {
        let ids: Vec<ConversationId> = rows.iter().map(|it| it.id).collect();
        let db = self.context.db.reader();
        let (queued, running): (Vec<_>, Vec<_>) = run::active_in_each(db, &ids)
            .await?
            .into_iter()
            .partition(|it| it.status == run::Status::Queued);
        let rounds = round::active_in_each(db, &ids).await?;
        let slots = slot::of_rounds(db, rounds.iter().map(|it| it.id)).await?;
        let run_in = |runs: &[run::Model], id| {
            let run = runs.iter().find(|it| it.conversation_id == id);
            run.cloned()
        };
        let round_in = |id| {
            let row = rounds.iter().find(|it| it.conversation_id == id)?.clone();
            let slots = slots.iter().filter(|it| it.round_id == row.id).cloned();
            let slots = slots.collect();
            Some(Round { row, slots })
        };
        let view = |row: &conversation::Model| {
            let runtime = Runtime {
                round: round_in(row.id),
                queued: run_in(&queued, row.id),
                running: run_in(&running, row.id),
            };
            views::conversation_view(row, space, &runtime)
        };
        Ok(rows.iter().map(view).collect())
    }

    /// The document of a conversation.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn conversation(
        &self,
        row: &conversation::Model,
        space: &space::Model,
    ) -> Result<ConversationView, DbErr> {
        Ok(views::conversation_view(
            row,
            space,
            &self.runtime(row.id).await?,
        ))
    }

    /// Who would speak if the button were pressed now, as far as that can be said without dice: the
    /// character after the last speaker.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn likely_speaker(&self, id: ConversationId) -> Result<Option<MembershipId>, DbErr> {
        let db = self.context.db.reader();
        let Some(row) = conversation::Entity::find_by_id(id).one(db).await? else {
            return Ok(None);
        };
        let last = timeline::last_speaker(db, id, i64::MAX).await?;
        let seats = membership::in_space(db, row.space_id).await?;
        let can: Vec<_> = seats.iter().filter(|it| it.can_be_scheduled()).collect();
        let place = |id: MembershipId| {
            seats
                .iter()
                .find(|it| it.id == id)
                .map(|it| (it.position, it.id))
        };
        let after = last.and_then(place);
        let next = can.iter().find(|it| Some((it.position, it.id)) > after);
        Ok(next.or(can.first()).map(|it| it.id))
    }

    /// A page of a timeline, ascending, and whether there is more.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn messages(
        &self,
        id: ConversationId,
        page: Page,
        limit: u64,
    ) -> Result<(Vec<message::View>, bool), DbErr> {
        let (rows, has_more) = timeline::page(self.context.db.reader(), id, page, limit).await?;
        Ok((self.views(rows).await?, has_more))
    }

    async fn entries(&self, rows: Vec<message::Model>) -> Result<Vec<Entry>, DbErr> {
        let gone = |it: &message::Model| it.visibility == message::Visibility::Hidden;
        let mut entries: Vec<(i64, Entry)> = rows
            .iter()
            .filter(|it| gone(it))
            .map(|it| (it.seq, Entry::Gone(it.gone())))
            .collect();
        let shown = rows.into_iter().filter(|it| !gone(it)).collect();
        let shown = self.views(shown).await?.into_iter();
        entries.extend(shown.map(|it| (it.seq, Entry::Message(Box::new(it)))));
        entries.sort_by_key(|(seq, _)| *seq);
        Ok(entries.into_iter().map(|(_, entry)| entry).collect())
    }

    async fn views(&self, rows: Vec<message::Model>) -> Result<Vec<message::View>, DbErr> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let db = self.context.db.reader();
        let ids: Vec<MessageId> = rows.iter().map(|it| it.id).collect();
        let swipes = swipe::counts(db, &ids).await?;
        let authors = membership::Entity::find()
            .filter(membership::Column::Id.is_in(rows.iter().map(|it| it.space_membership_id)))
            .all(db)
            .await?;
        let names: HashMap<MembershipId, String> = authors
            .into_iter()
            .map(|it| (it.id, it.cached_display_name))
            .collect();
        let markdown = Arc::clone(&self.context.markdown);
        let view = move |row: &message::Model| {
            let name = names
                .get(&row.space_membership_id)
                .map_or("", String::as_str);
            let n_swipes = swipes.get(&row.id).copied().unwrap_or_default();
            row.view(name, n_swipes, &markdown)
        };
        // A page of long texts is much to render, and this may be a thread of sockets.
        let main = self.context.shutdown.main();
        let rendering = main.spawn_blocking(move || rows.iter().map(view).collect());
        let ended = |_| DbErr::Custom("a page could not be rendered".to_owned());
        rendering.await.map_err(ended)
    }
}
