//! Enforces limits that all nodes share: counts entries in a sliding window in Redis and returns
//! how long a caller must wait above the maximum. Entries can be released or renewed.
//!
//! **Invariant:** no caller waits longer than [`COUNT_TIMEOUT`] for a count. If Redis does not
//! answer, it is not used for [`PAUSE`], and calls are allowed; callers also count on their own
//! node.
//!
//! The counter keys are hashes with the installation's secret: Redis sees no name and no address.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::key_derivation;
use base::shutdown::Shutdown;
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisResult, Script};
use sha2::{Digest, Sha256};
use tokio::time::{Instant, timeout};
use uuid::Uuid;

/// The label from which the key is derived; used for no other purpose.
const PURPOSE: &[u8] = b"troupe: names of counts between nodes";

/// How long a caller waits.
const COUNT_TIMEOUT: Duration = Duration::from_millis(80);

/// How long Redis is not used after it did not answer.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a new connection may take, in the background.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Adds an entry to a sorted set ordered by the time of Redis, which is the same for all nodes.
/// Returns the milliseconds until an entry is allowed; 0 means now.
const SCRIPT: &str = r"
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local most, span, mode = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[4]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - span)
local n = redis.call('ZCARD', KEYS[1])
if mode ~= 'note' and n >= most then
  local frees = redis.call('ZRANGE', KEYS[1], n - most, n - most, 'WITHSCORES')
  return math.max(1, frees[2] + span - now)
end
if mode ~= 'look' then
  redis.call('ZADD', KEYS[1], now, ARGV[3])
  redis.call('PEXPIRE', KEYS[1], span)
end
return 0";

/// The shared counters; inactive on a single node. Cheap to clone; clones share state.
#[derive(Clone, Default)]
pub struct SharedCounter {
    redis: Option<Arc<RedisCounter>>,
}

struct RedisCounter {
    client: Client,
    prefix: String,
    /// For the hashes.
    key: [u8; 32],
    node: Uuid,
    n: AtomicU64,
    script: Script,
    shutdown: Shutdown,
    connection: tokio::sync::Mutex<Option<MultiplexedConnection>>,
    paused_until: Mutex<Option<Instant>>,
}

/// A counter: at most `max` within `window`.
#[derive(Clone, Debug)]
pub struct CounterSpec {
    /// The kind of counter, and what it counts for.
    pub key: (&'static str, String),
    pub max: usize,
    pub window: Duration,
}

/// A counted entry, which can be released or renewed.
#[derive(Clone, Debug)]
pub struct CounterEntry {
    spec: CounterSpec,
    member: String,
}

#[derive(Clone, Copy)]
enum CounterMode {
    /// Counts one if the limit allows.
    Acquire,
    /// Counts one in any case.
    Record,
    /// Only reads.
    Peek,
}

impl SharedCounter {
    /// Returns counters that count nothing.
    pub fn none() -> Self {
        Self::default()
    }

    /// Connects to Redis; keys begin with `prefix`.
    ///
    /// # Errors
    /// Returns an error if `url` is not a Redis URL.
    pub fn with_redis(
        url: &str,
        prefix: String,
        secret: &str,
        shutdown: &Shutdown,
    ) -> RedisResult<Self> {
        let redis = RedisCounter {
            client: Client::open(url)?,
            prefix,
            key: key_derivation::derive_key(secret, PURPOSE),
            node: Uuid::now_v7(),
            n: AtomicU64::new(0),
            script: Script::new(SCRIPT),
            shutdown: shutdown.clone(),
            connection: tokio::sync::Mutex::default(),
            paused_until: Mutex::default(),
        };
        Ok(Self {
            redis: Some(Arc::new(redis)),
        })
    }

    /// Counts one of at most `max`.
    ///
    /// # Errors
    /// Returns the time until one is allowed. If Redis does not answer, the call is allowed.
    pub async fn acquire(&self, spec: CounterSpec) -> Result<Option<CounterEntry>, Duration> {
        let Some(redis) = &self.redis else {
            return Ok(None);
        };
        let entry = redis.new_entry(spec);
        match redis.run_script(entry.clone(), CounterMode::Acquire).await {
            Some(wait) if wait > Duration::ZERO => Err(wait),
            answer => Ok(answer.map(|_| entry)),
        }
    }

    /// Returns the time until one is allowed; `None` if one is allowed now, or Redis does not
    /// answer.
    pub async fn retry_after(&self, spec: CounterSpec) -> Option<Duration> {
        let redis = self.redis.as_ref()?;
        let wait = redis
            .run_script(redis.new_entry(spec), CounterMode::Peek)
            .await?;
        (wait > Duration::ZERO).then_some(wait)
    }

    /// Counts one even above the limit. Does not wait.
    pub fn record(&self, spec: CounterSpec) {
        if let Some(redis) = &self.redis {
            let entry = redis.new_entry(spec);
            self.renew(entry);
        }
    }

    /// Counts an entry again: its window restarts. Does not wait.
    pub fn renew(&self, entry: CounterEntry) {
        let Some(redis) = self.redis.clone() else {
            return;
        };
        let publisher = redis.clone();
        publisher.shutdown.spawn(async move {
            redis.run_script(entry, CounterMode::Record).await;
        });
    }

    /// Removes an entry. Does not wait.
    pub fn release(&self, entry: CounterEntry) {
        let Some(redis) = self.redis.clone() else {
            return;
        };
        let publisher = redis.clone();
        publisher.shutdown.spawn(async move {
            let key = redis.key(&entry.spec);
            let giving = async |mut connection: MultiplexedConnection| {
                let mut remove = redis::cmd("ZREM");
                remove.arg(key).arg(&entry.member);
                remove.exec_async(&mut connection).await
            };
            redis.with_connection(giving).await
        });
    }
}

impl RedisCounter {
    fn new_entry(&self, spec: CounterSpec) -> CounterEntry {
        let n = self.n.fetch_add(1, Ordering::Relaxed);
        let member = format!("{}/{n}", self.node.simple());
        CounterEntry { spec, member }
    }

    fn key(&self, spec: &CounterSpec) -> String {
        let mut hash = Sha256::new();
        for part in [
            self.key.as_slice(),
            spec.key.0.as_bytes(),
            spec.key.1.as_bytes(),
        ] {
            hash.update(part);
            hash.update([0]);
        }
        let hash = hash.finalize();
        format!(
            "{}:{}:{}",
            self.prefix,
            spec.key.0,
            hex::encode(&hash[..12])
        )
    }

    /// Returns the answer if it arrives in time. Runs on the main runtime, which owns the
    /// connection.
    async fn run_script(
        self: &Arc<Self>,
        entry: CounterEntry,
        mode: CounterMode,
    ) -> Option<Duration> {
        if entry.spec.max == 0 || self.is_paused() {
            return None;
        }
        let own = self.clone();
        let asking = self.shutdown.spawn(async move {
            let invoke = async |mut connection: MultiplexedConnection| -> RedisResult<u64> {
                let count = &entry.spec;
                let span = u64::try_from(count.window.as_millis()).unwrap_or(u64::MAX);
                let mode = match mode {
                    CounterMode::Acquire => "take",
                    CounterMode::Record => "note",
                    CounterMode::Peek => "look",
                };
                let mut invocation = own.script.key(own.key(count));
                invocation
                    .arg(count.max)
                    .arg(span)
                    .arg(&entry.member)
                    .arg(mode);
                invocation.invoke_async(&mut connection).await
            };
            own.with_connection(invoke).await
        });
        match timeout(COUNT_TIMEOUT, asking).await {
            Ok(Ok(Some(ms))) => Some(Duration::from_millis(ms)),
            Ok(_) => None,
            Err(_) => {
                self.pause();
                None
            }
        }
    }

    async fn with_connection<T>(
        &self,
        work: impl AsyncFnOnce(MultiplexedConnection) -> RedisResult<T>,
    ) -> Option<T> {
        let connection = self.connection().await?;
        match work(connection).await {
            Ok(done) => Some(done),
            Err(error) => {
                tracing::debug!(%error, "shared counter failed: {error}");
                self.pause();
                // The next call connects again.
                *self.connection.lock().await = None;
                None
            }
        }
    }

    async fn connection(&self) -> Option<MultiplexedConnection> {
        let mut kept = self.connection.lock().await;
        if let Some(connection) = &*kept {
            return Some(connection.clone());
        }
        if self.is_paused() {
            return None;
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(CONNECT_TIMEOUT));
        let connecting = self
            .client
            .get_multiplexed_async_connection_with_config(&config);
        match connecting.await {
            Ok(connection) => {
                *kept = Some(connection.clone());
                Some(connection)
            }
            Err(_) => {
                self.pause();
                None
            }
        }
    }

    fn is_paused(&self) -> bool {
        self.paused_until
            .lock()
            .is_some_and(|it| Instant::now() < it)
    }

    fn pause(&self) {
        *self.paused_until.lock() = Some(Instant::now() + PAUSE);
    }
}
