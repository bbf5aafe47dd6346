//! Embeds the texts of a program, with the local embedding or with the model of a provider.
//!
//! **Invariant:** nothing is stored or cached, and no text is logged. If the future of a request is
//! dropped, its connection to the provider is closed.

use std::sync::Arc;
use std::time::Duration;

use agent::permits::fair_permits::{FairPermit, FairPermits, PermitOwner};
use base::clock::Clock;
use base::ids::UserId;
use base::shutdown::Shutdown;
use leased_jobs::concurrency_limit::{ConcurrencyLimit, ConcurrencyPermit, LimitReached};
use llm::embeddings::error::EmbeddingError;
use llm::embeddings::relay::RelayedCall;
use llm::embeddings::request::{EmbeddingInput, ReceivedVectors};
use llm::registry::ProviderKind;
use responses_api::request::create_embeddings::{CreateEmbeddings, EmbeddedTexts};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::db::connect::Db;
use crate::providers::provider;
use crate::providers::provider_factory::{ProviderError, ProviderFactory};
use crate::responses::embeddings::embedding_log::EmbeddingCallLog;
use crate::responses::embeddings::relay_error::RelayError;
use crate::responses::embeddings::relay_request::EmbeddingCaller;
use crate::responses::embeddings::text_tokens;
use crate::responses::model_list;
use crate::responses::telemetry::call_metrics::CallMetrics;

/// The maximum number of requests that this node executes at the same time, so that programs use neither all
/// processors nor all connections of a provider. One user may use three quarters of them.
const MAX_RUNNING: usize = 16;

/// The maximum number of requests that wait or are executed at the same time, because each holds its body in
/// memory. While three quarters of the limit are in use, one user may use a quarter of it.
const MAX_ADMITTED: usize = 48;

/// From this number of requests on, the limit of each user applies.
const N_UNSHARED: usize = MAX_ADMITTED * 3 / 4;

/// The time for all calls of one request: a large input is sent in 32 calls, one after the other, which need
/// minutes on a slow server, and SDKs wait ten minutes by default.
const MAX_TIME: Duration = Duration::from_secs(5 * 60);

/// How long a request waits for another one to end: as long as it waits for a response of the provider.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Executes requests for embeddings. Cheap to clone; clones share the limit.
#[derive(Clone)]
pub struct EmbeddingRelay {
    db: Db,
    clock: Clock,
    shutdown: Shutdown,
    models: ProviderFactory,
    metrics: CallMetrics,
    permits: FairPermits,
    /// Counts the requests that wait or are executed.
    admitted: ConcurrencyLimit<UserId>,
}

/// Allows one request to be executed.
struct RelayPermit {
    _admitted: ConcurrencyPermit<UserId>,
    _running: FairPermit,
}

/// The vectors of all texts, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayedVectors {
    pub vectors: Vec<Vec<f32>>,
    /// As the provider states, otherwise as counted here.
    pub n_tokens: u64,
    /// The parameter that had no effect, if any.
    pub ignored: Option<&'static str>,
}

impl EmbeddingRelay {
    /// Returns a relay that calls the providers of this factory.
    pub fn new(
        (db, clock, shutdown): (Db, Clock, Shutdown),
        models: ProviderFactory,
        metrics: CallMetrics,
    ) -> Self {
        Self {
            db,
            clock,
            shutdown,
            models,
            metrics,
            permits: FairPermits::with_reserved_quarter(MAX_RUNNING),
            admitted: ConcurrencyLimit::new(MAX_ADMITTED).with_unshared(N_UNSHARED),
        }
    }

    /// Returns the vectors of the texts of a request.
    ///
    /// # Errors
    /// Returns `ModelNotFound` for an unknown model, the error of the first limit that the request
    /// exceeds, `Busy` when no other request ends in time, `UserLimitReached` when too many requests of
    /// this user exist, and `Embedding` when the provider fails.
    pub async fn embed(
        &self,
        caller: EmbeddingCaller,
        request: CreateEmbeddings,
    ) -> Result<RelayedVectors, RelayError> {
        if request.model == local_embedding::MODEL_NAME {
            return self.embed_locally(caller, request).await;
        }
        let found = model_list::find_embedding_provider(self.db.reader(), &request.model).await?;
        let provider = found.ok_or_else(|| RelayError::ModelNotFound(request.model.clone()))?;
        self.embed_by_provider(caller, provider, request).await
    }

    /// Embeds texts with the local embedding.
    async fn embed_locally(
        &self,
        caller: EmbeddingCaller,
        request: CreateEmbeddings,
    ) -> Result<RelayedVectors, RelayError> {
        let EmbeddedTexts::Texts(_) = &request.input else {
            return Err(RelayError::TokenIdsNotSupported);
        };
        let n_dimensions = local_embedding::DIMENSIONS;
        if request.dimensions.is_some_and(|it| it != n_dimensions) {
            return Err(RelayError::FixedDimensions(n_dimensions));
        }
        let permit = self.permit(caller.user).await?;
        let (input, n_tokens) = self.count(request.input, &permit).await?;
        let name = local_embedding::MODEL_NAME;
        let log = EmbeddingCallLog::start(&self.clock, &self.metrics, &caller, ("local", name));
        let embed = move || {
            // The calculation continues if the client disconnects, so it owns the permit.
            let _permit = permit;
            match input {
                EmbeddedTexts::Texts(texts) => {
                    texts.iter().map(|it| local_embedding::embed(it)).collect()
                }
                EmbeddedTexts::TokenIds(_) => Vec::new(),
            }
        };
        let embedded = self.shutdown.main().spawn_blocking(embed).await;
        let vectors = embedded.map_err(RelayError::from);
        let (vectors, n_tokens) = log.finish(vectors.map(|it| (it, n_tokens)))?;
        Ok(RelayedVectors {
            vectors,
            n_tokens,
            ignored: request.user.map(|_| "user"),
        })
    }

    /// Embeds texts with the model of a provider.
    async fn embed_by_provider(
        &self,
        caller: EmbeddingCaller,
        provider: provider::Model,
        request: CreateEmbeddings,
    ) -> Result<RelayedVectors, RelayError> {
        let is_openai = provider.kind == ProviderKind::Openai;
        if matches!(request.input, EmbeddedTexts::TokenIds(_)) && !is_openai {
            return Err(RelayError::TokenIdsNotSupported);
        }
        let permit = self.permit(caller.user).await?;
        let (input, n_counted) = self.count(request.input, &permit).await?;
        let names = (provider.name.as_str(), request.model.as_str());
        let log = EmbeddingCallLog::start(&self.clock, &self.metrics, &caller, names);
        let (sent_user, ignored) = match is_openai {
            true => (request.user, None),
            false => (None, request.user.map(|_| "user")),
        };
        let dimensions = request.dimensions;
        let received = self.call(&provider, input, dimensions, sent_user).await;
        let counted = |it: ReceivedVectors| (it.vectors, it.n_tokens.unwrap_or(n_counted));
        let (vectors, n_tokens) = log.finish(received.map(counted))?;
        Ok(RelayedVectors {
            vectors,
            n_tokens,
            ignored,
        })
    }

    async fn permit(&self, user: UserId) -> Result<Arc<RelayPermit>, RelayError> {
        // This limit is checked first, so that only few requests wait with their bodies in memory.
        let admitted = self
            .admitted
            .acquire(user)
            .map_err(|reached| match reached {
                LimitReached::Global => RelayError::Busy,
                LimitReached::PerOwner => RelayError::UserLimitReached,
            })?;
        let running = timeout(MAX_WAIT, self.permits.acquire(PermitOwner::User(user))).await;
        Ok(Arc::new(RelayPermit {
            _admitted: admitted,
            _running: running.map_err(|_| RelayError::Busy)?,
        }))
    }

    /// Returns the input and its number of tokens.
    async fn count(
        &self,
        input: EmbeddedTexts,
        permit: &Arc<RelayPermit>,
    ) -> Result<(EmbeddedTexts, u64), RelayError> {
        let permit = permit.clone();
        let count = move || {
            // The calculation continues if the client disconnects, so it owns the permit.
            let _permit = permit;
            text_tokens::count(&input).map(|it| (input, it))
        };
        self.shutdown.main().spawn_blocking(count).await?
    }

    /// Calls a provider on the main runtime, which owns the connections. Dropping the future drops the set of
    /// tasks, which aborts the call.
    async fn call(
        &self,
        provider: &provider::Model,
        input: EmbeddedTexts,
        dimensions: Option<usize>,
        user: Option<String>,
    ) -> Result<ReceivedVectors, RelayError> {
        let spec = provider.spec(&self.models.cipher);
        let spec = spec.map_err(ProviderError::from)?;
        let client = self.models.relayed_embeddings.client(&spec, false);
        let client = client.map_err(ProviderError::from)?;
        let work = async move {
            let texts: Vec<&str>;
            let input = match &input {
                EmbeddedTexts::TokenIds(ids) => EmbeddingInput::TokenIds(ids),
                EmbeddedTexts::Texts(all) => {
                    texts = all.iter().map(String::as_str).collect();
                    EmbeddingInput::Texts(&texts)
                }
            };
            let call = RelayedCall {
                input,
                dimensions,
                user: user.as_deref(),
            };
            client.relay(call, Instant::now() + MAX_TIME).await
        };
        let mut tasks: JoinSet<Result<ReceivedVectors, EmbeddingError>> = JoinSet::new();
        tasks.spawn_on(work, self.shutdown.main());
        let result = tasks.join_next().await.expect("the set has a task")?;
        result.map_err(|error| RelayError::Embedding {
            error,
            has_dimensions: dimensions.is_some(),
        })
    }
}
