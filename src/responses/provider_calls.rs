//! Limits the use of each provider by `/v1`: how many calls run at the same time on this node, and
//! how many responses exist that call the provider or wait for it.
//!
//! **Invariant:** a response whose client waits has a permit before anything of it is stored, holds
//! it also while its tools run, and releases it when its task ends, however it ends.

use std::fmt;
use std::sync::Arc;

use agent::permits::fair_permits::FairPermits;
use base::ids::{ProviderId, UserId};
use dashmap::DashMap;
use leased_jobs::concurrency_limit::{ConcurrencyLimit, ConcurrencyPermit, LimitReached};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use serde::Serialize;
use utoipa::ToSchema;

use crate::config::Config;
use crate::responses::error::ResponseEngineError;

/// The calls of all providers. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct ProviderQueues {
    n_calls: usize,
    n_waiting: usize,
    by_provider: Arc<DashMap<ProviderId, Arc<ProviderCalls>>>,
}

/// The calls of one provider.
pub struct ProviderCalls {
    pub call_permits: FairPermits,
    /// Limits the responses whose clients wait, from their start to their end.
    response_permits: ConcurrencyLimit<UserId>,
}

/// The calls of a provider under `/v1` on this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ProviderLoad)]
pub struct ProviderLoad {
    provider_id: ProviderId,
    running: usize,
    /// Calls that wait until another one ends.
    waiting: usize,
}

impl ProviderQueues {
    /// Creates the limits from the configuration.
    pub fn new(config: &Config) -> Self {
        Self {
            n_calls: config.responses_max_calls_per_provider,
            n_waiting: config.responses_max_waiting_per_provider,
            by_provider: Arc::default(),
        }
    }

    /// Returns the calls of a provider.
    pub fn calls_of(&self, provider: ProviderId) -> Arc<ProviderCalls> {
        let fresh = || Arc::new(ProviderCalls::new(self.n_calls, self.n_waiting));
        self.by_provider
            .entry(provider)
            .or_insert_with(fresh)
            .clone()
    }

    /// Returns the load of every provider that was called since the start, by id.
    pub fn list_loads(&self) -> Vec<ProviderLoad> {
        let all = self.by_provider.iter().map(|it| ProviderLoad {
            provider_id: *it.key(),
            running: it.call_permits.n_running(),
            waiting: it.call_permits.n_waiting(),
        });
        let mut all: Vec<ProviderLoad> = all.collect();
        all.sort_by_key(|it| it.provider_id);
        all
    }
}

impl ProviderCalls {
    /// Creates the limits: `n_calls` calls at the same time, and `n_waiting` more responses than
    /// calls.
    pub fn new(n_calls: usize, n_waiting: usize) -> Self {
        Self {
            call_permits: FairPermits::new(n_calls),
            response_permits: ConcurrencyLimit::new(n_calls.saturating_add(n_waiting))
                .with_unshared(n_calls),
        }
    }

    /// Acquires the permit of a response of this user. Its calls may still wait for a call permit.
    ///
    /// # Errors
    /// Returns `ProviderBusy` when all permits are in use, and `UserLimitReached` when there are as
    /// many responses as calls and the user has a quarter of the permits.
    pub fn acquire_response_permit(
        &self,
        user: UserId,
    ) -> Result<ConcurrencyPermit<UserId>, ResponseEngineError> {
        let permit = self.response_permits.acquire(user);
        permit.map_err(|reached| match reached {
            LimitReached::Global => ResponseEngineError::ProviderBusy,
            LimitReached::PerOwner => ResponseEngineError::UserLimitReached,
        })
    }
}

impl fmt::Debug for ProviderQueues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list_loads()).finish()
    }
}

/// Gauges of the calls, read at each scrape.
impl Collector for ProviderQueues {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let (name, help) = (
            "v1_calls",
            "Model calls of /v1 that run or wait on this node",
        );
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for load in self.list_loads() {
            let provider = load.provider_id.0.to_string();
            for (state, n) in [("running", load.running), ("waiting", load.waiting)] {
                let labels = [("provider_id", provider.as_str()), ("state", state)];
                let one = family.encode_family(&labels)?;
                ConstGauge::new(n).encode(one)?;
            }
        }
        Ok(())
    }
}
