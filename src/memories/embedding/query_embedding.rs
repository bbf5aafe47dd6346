//! Embeds queries with the provider's model of a space, within a time limit.

use std::sync::Arc;
use std::time::Duration;

use base::ids::EmbeddingModelId;
use base::shutdown::Shutdown;
use llm::embeddings::error::EmbeddingError;
use llm::embeddings::options::CallKind;
use recall::quantized_vector::QueryVector;
use recall::query::ProviderVector;
use sea_orm::DbErr;
use tokio::task::JoinError;
use tokio::time::timeout;

use crate::db::connect::Db;
use crate::memories::embedding::model_choice::EmbeddingChoice;
use crate::memories::embedding_model;
use crate::providers::provider_factory::{ProviderError, ProviderFactory};
use crate::spaces::space;

/// The time limit of a request. Together with the search it stays within the 2 s for which a prompt
/// waits at most.
const READ_LIMIT: Duration = Duration::from_millis(1_750);
/// How long a query waits for the request that tests, after failures, whether the provider works again.
/// The request itself continues in the background.
const PROBE_WAIT: Duration = Duration::from_millis(250);

/// Embeds queries. Cheap to clone.
#[derive(Clone)]
pub struct QueryEmbedder {
    pub models: ProviderFactory,
    pub shutdown: Shutdown,
}

/// The vectors of several queries, by the same model.
#[derive(Clone, Debug)]
pub struct QueryVectors {
    pub model: EmbeddingModelId,
    vectors: Vec<QueryVector>,
    cosine_range: (f32, f32),
}

/// Why the provider returned no vectors for a query.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    #[error(transparent)]
    Database(#[from] DbErr),
    #[error(transparent)]
    Provider(#[from] ProviderError),
    #[error(transparent)]
    Embedding(#[from] EmbeddingError),
    /// The task that calls the provider panicked.
    #[error("the task ended without a result")]
    TaskEnded(#[from] JoinError),
    #[error("the provider has failed before, and is only being tested")]
    ProbeContinues,
}

impl QueryVectors {
    /// Returns the vector of the query at this position.
    pub fn at(&self, position: usize) -> Option<ProviderVector<'_>> {
        Some(ProviderVector {
            vector: self.vectors.get(position)?,
            cosine_range: self.cosine_range,
        })
    }
}

impl QueryEmbedder {
    /// Returns the vectors of these texts. `None`: the memories of the space have no vectors of the
    /// model that it uses, or the provider must not be called. Executes no statement if they never had
    /// any, and sends nothing while the circuit breaker of the provider is open.
    ///
    /// # Errors
    /// Returns why the provider returned no vectors in time.
    pub async fn embed(
        &self,
        db: &Db,
        space: &space::Model,
        texts: &[String],
    ) -> Result<Option<QueryVectors>, QueryError> {
        let Some(id) = space.embedding_model_id else {
            return Ok(None);
        };
        let choice = EmbeddingChoice::load(db.reader(), &space.settings).await?;
        let Some(choice) = choice.filter(|it| !it.is_paused()) else {
            return Ok(None);
        };
        let row = embedding_model::find(db.reader(), id).await?;
        // The memories are embedded again in the background.
        let Some(row) = row.filter(|it| choice.fits(it)) else {
            return Ok(None);
        };
        let dimensions = usize::try_from(row.dimensions).ok();
        let vectors = self.embed_texts(&choice, dimensions, texts.to_vec());
        let vectors = vectors.await?;
        Ok(Some(QueryVectors {
            model: row.id,
            vectors: vectors.iter().map(|it| QueryVector::new(it)).collect(),
            cosine_range: row.cosine_range(),
        }))
    }

    /// Returns the vectors of these texts, each of length 1; `dimensions` is their number of dimensions, if it
    /// is known. Sends nothing while the circuit breaker of the provider is open. The request continues in the
    /// background if the caller stops waiting.
    ///
    /// # Errors
    /// Returns why the provider returned no vectors in time.
    pub async fn embed_texts(
        &self,
        choice: &EmbeddingChoice,
        dimensions: Option<usize>,
        texts: Vec<String>,
    ) -> Result<Vec<Arc<[f32]>>, QueryError> {
        let client = choice.client(&self.models)?;
        let options = choice.read_options(READ_LIMIT, dimensions);
        let is_closed = client.breaker_open_for().is_none();
        // A task of the main runtime, which owns the connections. It is not canceled, so that the circuit
        // breaker also counts its time limit.
        let call = self.shutdown.spawn(async move {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            client.embed(&texts, CallKind::Read, &options).await
        });
        if is_closed {
            return Ok(call.await??);
        }
        let probe = timeout(PROBE_WAIT, call).await;
        Ok(probe.map_err(|_| QueryError::ProbeContinues)???)
    }
}
