//! Learns with a model: sends new messages together with the nearest existing memories, and reads the
//! memories in the answer. If the model returns no usable answer, the messages become snippets.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::ids::ConversationId;
use recall::entry::{MemoryEntry, RecallScope};
use recall::query::QueryText;
use recall::search::{RecallRules, search};
use sea_orm::DbErr;
use tokio_util::sync::CancellationToken;

use crate::conversations::conversation::ConversationKind;
use crate::conversations::{branching, conversation, message};
use crate::db::connect::Db;
use crate::memories::error::MemoryError;
use crate::memories::index_cache::MemoryIndexes;
use crate::memories::learning::extraction_answer::AnswerContext;
use crate::memories::learning::extraction_request::RequestBudget;
use crate::memories::learning::learned_memory::DraftMemory;
use crate::memories::learning::member_names::MemberNames;
use crate::memories::learning::snippets;
use crate::memories::models::memory_models::{MemoryModel, MemoryModelError, MemoryModels};
use crate::spaces::membership::Model as Membership;
use crate::spaces::space;

/// The maximum number of existing memories in a request.
const MAX_EXISTING: usize = 20;
/// How many of the newest messages are searched for existing memories.
const MAX_QUERIES: usize = 10;
/// The maximum length of a query, in bytes.
const MAX_QUERY_BYTES: usize = 4_000;
/// The maximum number of requests: if the answer has another form, it is requested once more.
const MAX_REQUESTS: usize = 2;

/// The messages of a task, and their conversation.
pub struct NewMessages {
    pub space: space::Model,
    pub conversation: conversation::Model,
    /// Ascending.
    pub messages: Vec<message::Model>,
    /// All members of the space, former ones included.
    pub members: Vec<Membership>,
}

/// Extracts memories with one model.
pub struct Extraction<'a> {
    pub db: &'a Db,
    pub indexes: &'a MemoryIndexes,
    pub models: &'a MemoryModels,
    pub model: &'a MemoryModel,
    pub cancel: &'a CancellationToken,
}

impl Extraction<'_> {
    /// Returns the memories that the model extracts from the messages. Without its answer the messages
    /// become snippets; after a failed call the model is not called again.
    ///
    /// # Errors
    /// Returns the database's error, `TaskEnded`, or `Canceled`.
    pub async fn make(&self, new: &NewMessages) -> Result<Vec<DraftMemory>, MemoryError> {
        let names = MemberNames::new(&new.members);
        let budget = RequestBudget::of_model(self.model);
        let lineage = self.load_lineage(&new.conversation).await?;
        let (mut drafts, mut is_available) = (Vec::new(), true);
        for batch in budget.batches(&new.messages) {
            if !is_available {
                drafts.extend(snippets::make(batch, &new.members));
                continue;
            }
            let memories = self.find_nearest(new, batch, &lineage, budget).await?;
            let context = AnswerContext {
                conversation: &new.conversation,
                messages: batch,
                memories: &memories,
                names: &names,
            };
            match self.request(new, &context, budget).await {
                Ok(made) => drafts.extend(made),
                Err(MemoryModelError::Canceled) => return Err(MemoryError::Canceled),
                Err(MemoryModelError::Database(error)) => return Err(error.into()),
                Err(error) => {
                    tracing::warn!(
                        space.id = %new.space.id, conversation.id = %new.conversation.id,
                        llm.model = self.model.model_name(), %error,
                        "failed to extract memories with a model; storing snippets instead: {error}"
                    );
                    is_available = matches!(error, MemoryModelError::InvalidJson);
                    drafts.extend(snippets::make(batch, &new.members));
                }
            }
        }
        Ok(drafts)
    }

    async fn request(
        &self,
        new: &NewMessages,
        context: &AnswerContext<'_>,
        budget: RequestBudget,
    ) -> Result<Vec<DraftMemory>, MemoryModelError> {
        let request = budget.request(context.messages, context.memories, context.names);
        for _ in 0..MAX_REQUESTS {
            let (space, request) = (new.space.id, request.clone());
            let answer = self
                .models
                .request_json(self.model, space, request, self.cancel);
            match answer.await {
                Ok(answer) => {
                    if let Some(made) = context.read(&answer) {
                        return Ok(made);
                    }
                }
                Err(MemoryModelError::InvalidJson) => {}
                Err(error) => return Err(error),
            }
        }
        Err(MemoryModelError::InvalidJson)
    }

    /// Returns the conversations whose memories the messages may correct.
    async fn load_lineage(
        &self,
        row: &conversation::Model,
    ) -> Result<BTreeMap<ConversationId, i64>, DbErr> {
        match row.kind {
            ConversationKind::Branch => branching::load_lineage(self.db.reader(), row).await,
            ConversationKind::Root | ConversationKind::Thread => Ok([(row.id, i64::MAX)].into()),
        }
    }

    /// Returns the memories of everyone that are nearest to the newest messages of a batch.
    async fn find_nearest(
        &self,
        new: &NewMessages,
        batch: &[message::Model],
        lineage: &BTreeMap<ConversationId, i64>,
        budget: RequestBudget,
    ) -> Result<Vec<Arc<MemoryEntry>>, MemoryError> {
        if new.space.memory_version == 0 {
            return Ok(Vec::new());
        }
        let index = self.indexes.load(self.db, &new.space).await?;
        let newest = batch.iter().rev().take(MAX_QUERIES);
        let texts = newest.map(|it| {
            let text = snippets::text_of(it);
            text[..text.floor_char_boundary(MAX_QUERY_BYTES)].to_owned()
        });
        let texts: Vec<String> = texts.collect();
        let scope = RecallScope {
            member: None,
            lineage: Some(lineage.clone()),
            history: None,
            chosen: None,
        };
        let rules = RecallRules {
            top_k: MAX_EXISTING,
            threshold: 0.0,
            token_budget: budget.memories,
            cosine_range: local_embedding::COSINE_RANGE,
        };
        // Embedding and searching is CPU work, which must not block streams.
        let work = move || {
            let vectors: Vec<Vec<f32>> =
                texts.iter().map(|it| local_embedding::embed(it)).collect();
            let queries = texts.iter().zip(&vectors).map(|(text, vector)| QueryText {
                text,
                authors: "",
                vector: Some(vector),
                // Local vectors are sufficient: these memories only help the model to recognize known facts.
                provider_vector: None,
            });
            let queries: Vec<QueryText<'_>> = queries.collect();
            let found = search(&index.memories, &scope, &queries, &rules, &|| false).into_iter();
            let found = found.filter(|it| it.rank.is_some()).map(|it| it.memory);
            found.collect()
        };
        Ok(tokio::task::spawn_blocking(work).await?)
    }
}
