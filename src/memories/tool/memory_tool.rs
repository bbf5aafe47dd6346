//! The tool `troupe:memory` of one speaker: searches what the speaker may recall, and collects the
//! changes that its run requests.
//!
//! **Invariant:** a call reads and changes only memories of its space, and changes only those of its
//! speaker.

use std::collections::{BTreeMap, HashMap};

use agent::tools::builtin::memory as memory_declaration;
use agent::tools::parse_arguments;
use agent::tools::tool::{ServerTool, ToolArguments, ToolResult};
use async_trait::async_trait;
use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, MemoryId};
use llm::tool::Tool;
use recall::content::folded;
use recall::search::RecallRules;
use sea_orm::DbErr;
use serde::Serialize;
use serde_json::Value;

use crate::db::connect::Db;
use crate::memories::index_cache::MemoryIndexes;
use crate::memories::memory::{MemoryKind, MemoryOrigin};
use crate::memories::memory_settings::{MemberSwitches, MemorySettings};
use crate::memories::memory_store::{NewMemory, PreparedMemory};
use crate::memories::prompt_search::RecallRequest;
use crate::memories::tool::memory_action::{MemoryAction, RememberedFact};
use crate::memories::tool::pending_changes::{PendingChanges, RequestedChange};
use crate::memories::{memory, prompt_search};
use crate::spaces::{membership, space};

/// The minimum score of a search result. A model that searches can judge the results, so this is lower
/// than for a prompt.
const SEARCH_THRESHOLD: f32 = 0.2;
/// The number of candidates of a search whose results are then filtered by kind.
const MAX_CANDIDATES: usize = 40;

/// The tool for one speaker.
pub struct MemoryTool {
    pub db: Db,
    pub indexes: MemoryIndexes,
    pub space: space::Model,
    pub speaker: MembershipId,
    /// The switches of the speaker.
    pub switches: MemberSwitches,
    /// Only memories of what was said since then are found; `None`: all.
    pub heard_since: Option<Timestamp>,
    /// The conversation and its ancestors, as in [`RecallRequest`]; empty: no branch.
    pub lineage: BTreeMap<ConversationId, i64>,
    /// The ids and names of the members that a new memory can be about.
    pub members: Vec<(MembershipId, String)>,
    /// Where changes are collected; `None`: the speaker may only search.
    pub changes: Option<PendingChanges>,
}

/// The result of a search, for the model.
#[derive(Serialize)]
struct SearchResults {
    memories: Vec<SearchResult>,
    /// Why the memories could not be searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

#[derive(Serialize)]
struct SearchResult {
    id: MemoryId,
    kind: MemoryKind,
    content: String,
    importance: f64,
    /// From 0 to 1, with two decimal places.
    score: f32,
    /// Whether it belongs to the speaker, who may then forget it.
    own: bool,
}

impl MemoryTool {
    /// Returns the ids and names of these members, as the tool needs them.
    pub fn names_of(members: &[membership::Model]) -> Vec<(MembershipId, String)> {
        let names = members
            .iter()
            .map(|it| (it.id, it.cached_display_name.clone()));
        names.collect()
    }

    async fn search(&self, query: String, kind: Option<MemoryKind>, top_k: usize) -> ToolResult {
        if !MemorySettings::of_space(&self.space.settings).recalls() {
            return Err("The memory of this space is switched off.".to_owned());
        }
        if !self.switches.recall {
            return Err("You cannot search memories: recall is switched off for you.".to_owned());
        }
        let request = RecallRequest {
            space: self.space.clone(),
            member: Some(self.speaker),
            lineage: Some(self.lineage.clone()),
            history: None,
            chosen: None,
            queries: vec![query.into()],
            rules: Some(RecallRules {
                top_k: kind.map_or(top_k, |_| MAX_CANDIDATES),
                threshold: SEARCH_THRESHOLD,
                token_budget: i64::MAX,
                cosine_range: local_embedding::COSINE_RANGE,
            }),
            prompt_tokens: i64::MAX,
        };
        let mut found = prompt_search::recall(&self.db, &self.indexes, request).await;
        if let Some(time) = self.heard_since {
            let heard = found.retain_heard(self.db.reader(), self.speaker, time);
            heard.await.map_err(|error| unavailable(&error))?;
        }
        let scores = found.found.iter().map(|it| {
            let score = it.text_score.max(it.vector_score.unwrap_or(0.0));
            (it.memory.id, score)
        });
        // Pinned memories are recalled for every prompt, but not found by every search.
        let scores: HashMap<MemoryId, f32> =
            scores.filter(|(_, it)| *it >= SEARCH_THRESHOLD).collect();
        let listed = self.list(scores, kind, top_k).await;
        let memories = listed.map_err(|error| unavailable(&error))?;
        let results = SearchResults {
            memories,
            note: found
                .is_degraded
                .then_some("The memories cannot be searched now."),
        };
        serde_json::to_string(&results).map_err(|error| unavailable(&error))
    }

    /// Returns those of these memories that are still stored, best first.
    async fn list(
        &self,
        scores: HashMap<MemoryId, f32>,
        kind: Option<MemoryKind>,
        top_k: usize,
    ) -> Result<Vec<SearchResult>, DbErr> {
        if scores.is_empty() {
            return Ok(Vec::new());
        }
        let ids = scores.keys().copied();
        // From the rows, because a memory may have been deleted since the version of the index.
        let rows = memory::list_in_space(self.db.reader(), self.space.id, ids).await?;
        let of_kind = rows
            .into_iter()
            .filter(|it| kind.is_none_or(|kind| it.kind == kind));
        let mut found: Vec<SearchResult> = of_kind
            .map(|row| SearchResult {
                score: (scores[&row.id] * 100.0).round() / 100.0,
                own: row.space_membership_id == Some(self.speaker),
                id: row.id,
                kind: row.kind,
                content: row.content,
                importance: row.importance,
            })
            .collect();
        found.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
        found.truncate(top_k);
        Ok(found)
    }

    fn remember(&self, changes: &PendingChanges, fact: RememberedFact) -> ToolResult {
        if !MemorySettings::of_space(&self.space.settings).learns() {
            return Err("Nothing new is remembered in this space.".to_owned());
        }
        if !self.switches.learn {
            return Err("You cannot add memories: learning is switched off for you.".to_owned());
        }
        let memory = NewMemory {
            owner: Some(self.speaker),
            about: self.find_member(fact.about.as_deref())?,
            source: None,
            kind: fact.kind,
            origin: MemoryOrigin::Tool,
            content: fact.content,
            importance: fact.importance,
            is_pinned: false,
            created_by: None,
        };
        let memory = Box::new(PreparedMemory::new(memory));
        changes.add(RequestedChange::Remember(memory))?;
        Ok(accepted())
    }

    fn find_member(&self, name: Option<&str>) -> Result<Option<MembershipId>, String> {
        let Some(name) = name.map(str::trim).filter(|it| !it.is_empty()) else {
            return Ok(None);
        };
        let is_named = |member: &&(MembershipId, String)| folded(&member.1) == folded(name);
        match self.members.iter().find(is_named) {
            Some((id, _)) => Ok(Some(*id)),
            None => Err("`about` must be the name of a member of this space.".to_owned()),
        }
    }

    async fn forget(&self, changes: &PendingChanges, id: MemoryId) -> ToolResult {
        let found = memory::find_in_space(self.db.reader(), self.space.id, id).await;
        let found = found.map_err(|error| unavailable(&error))?;
        // The error does not reveal whether a memory of another member exists.
        let own = found.filter(|it| it.space_membership_id == Some(self.speaker));
        match own {
            None => Err("You have no memory of your own with this id.".to_owned()),
            Some(it) if it.is_pinned => Err("A pinned memory cannot be forgotten.".to_owned()),
            Some(_) => {
                changes.add(RequestedChange::Forget(id))?;
                Ok(accepted())
            }
        }
    }
}

#[async_trait]
impl ServerTool for MemoryTool {
    fn declaration(&self) -> Tool {
        match self.changes {
            Some(_) => memory_declaration::declaration(),
            None => memory_declaration::search_declaration(),
        }
    }

    async fn run(&self, arguments: &ToolArguments, _: &(dyn Fn(&str) + Sync)) -> ToolResult {
        let action = MemoryAction::parse(arguments)?;
        match (action, &self.changes) {
            (MemoryAction::Search { query, kind, top_k }, _) => {
                self.search(query, kind, top_k).await
            }
            (_, None) => {
                Err("Memories can only be searched here; this changes nothing.".to_owned())
            }
            (MemoryAction::Remember(fact), Some(changes)) => self.remember(changes, fact),
            (MemoryAction::Forget(id), Some(changes)) => self.forget(changes, id).await,
        }
    }

    /// Leaves out the texts, so that no other table contains the text of a deleted memory.
    fn recorded_output(&self, output: &str) -> String {
        let Ok(mut output) = serde_json::from_str::<Value>(output) else {
            return String::new();
        };
        let memories = output["memories"].as_array_mut().into_iter().flatten();
        for memory in memories.filter_map(Value::as_object_mut) {
            memory.remove("content");
        }
        output.to_string()
    }

    /// Leaves out the text of a new memory, so that no message contains the text of a deleted
    /// memory.
    fn recorded_arguments(&self, arguments: &str) -> String {
        match parse_arguments::parse(arguments) {
            Some(mut arguments) => {
                arguments.remove("content");
                Value::Object(arguments).to_string()
            }
            None => String::new(),
        }
    }
}

fn accepted() -> String {
    r#"{"accepted":true,"takes_effect":"when this reply is complete"}"#.to_owned()
}

fn unavailable(error: &dyn std::fmt::Display) -> String {
    tracing::debug!(%error, "a memory tool call failed: {error}");
    "The memory is not available now.".to_owned()
}
