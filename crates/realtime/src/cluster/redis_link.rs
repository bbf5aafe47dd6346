//! The two connections to Redis: one sends the queued messages of this node, the other receives the
//! messages of the other nodes.
//!
//! Both reconnect automatically, after the waits of [`RECONNECT_WAITS`].
//! A dead connection is detected by silence: a node receives its own heartbeat.

use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use base::shutdown::Shutdown;
use futures::StreamExt;
use redis::{AsyncConnectionConfig, Client, RedisError, RedisResult};
use tokio::time::{MissedTickBehavior, sleep, timeout};

use crate::cluster::bus::{BusState, ClusterReceiver};
use crate::cluster::message::{ClusterMessage, MessageBody, MessageCipher};
use crate::cluster::sequence::{PeerSequences, SequenceCheck};
use crate::cluster::signal::ClusterSignal;
use crate::envelope::Payload;

/// If Redis does not answer within this time, the connection is opened again.
const REDIS_TIMEOUT: Duration = Duration::from_secs(1);
/// A node receives at least its own heartbeat this often.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// A connection that receives nothing for this long is dead.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(4);
/// The waits before a new connection: each twice the last one, up to 1 s, plus a random part of up
/// to the same length.
const RECONNECT_WAITS: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(25))
    .with_max_delay(Duration::from_secs(1))
    .with_jitter()
    .without_max_times();
/// Messages sent together.
const MAX_BATCH: usize = 64;

/// The settings of the connection to Redis.
pub struct ClusterSettings {
    /// `redis://…` or `rediss://…`.
    pub url: String,
    /// The channel of this installation; only its nodes use it.
    pub channel: String,
    /// Shared by all its nodes.
    pub secret: String,
}

/// The state of the connections.
struct RedisLink {
    client: Client,
    channel: String,
    cipher: MessageCipher,
    state: Arc<BusState>,
    receiver: Arc<dyn ClusterReceiver>,
}

/// Creates a client for a Redis URL.
///
/// # Errors
/// Returns an error if `url` is not a Redis URL.
pub fn create_client(url: &str) -> RedisResult<Client> {
    Client::open(url)
}

/// Starts to send and receive, until shutdown.
///
/// # Errors
/// Returns an error if `url` is not a Redis URL. An unreachable Redis is not an error: the link
/// retries.
pub fn start(
    settings: ClusterSettings,
    state: &Arc<BusState>,
    receiver: Arc<dyn ClusterReceiver>,
    shutdown: &Shutdown,
) -> RedisResult<()> {
    let link = Arc::new(RedisLink {
        client: create_client(&settings.url)?,
        channel: settings.channel,
        cipher: MessageCipher::new(&settings.secret),
        state: state.clone(),
        receiver,
    });
    let (sending, receiving, beating) = (link.clone(), link.clone(), link);
    let stopping = &shutdown.stopping;
    let (receiver_stop, heartbeat_stop, sender_stop) =
        (stopping.clone(), stopping.clone(), stopping.clone());
    shutdown.spawn(async move {
        receiver_stop
            .run_until_cancelled(receiving.run_receiver())
            .await
    });
    shutdown.spawn(async move {
        heartbeat_stop
            .run_until_cancelled(beating.run_heartbeat())
            .await
    });
    shutdown.spawn(async move {
        sender_stop.run_until_cancelled(sending.run_sender()).await;
        sending.send_departure().await;
    });
    Ok(())
}

impl RedisLink {
    async fn run_heartbeat(&self) {
        let mut tick = tokio::time::interval(HEARTBEAT_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            self.send(ClusterSignal::Heartbeat { is_new: false });
        }
    }

    fn send(&self, signal: ClusterSignal) {
        self.state.send_queue.push(MessageBody::Signal(signal));
    }

    async fn run_sender(&self) {
        let mut backoff = RECONNECT_WAITS.build();
        loop {
            let Err(error) = self.send_until_error(&mut backoff).await;
            tracing::debug!(%error, "failed to send to other nodes; retrying: {error}");
            sleep(backoff.next().unwrap_or_default()).await;
        }
    }

    async fn send_until_error(
        &self,
        backoff: &mut ExponentialBackoff,
    ) -> RedisResult<std::convert::Infallible> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(REDIS_TIMEOUT))
            .set_response_timeout(Some(REDIS_TIMEOUT));
        let connecting = self
            .client
            .get_multiplexed_async_connection_with_config(&config);
        let mut connection = timeout(REDIS_TIMEOUT, connecting)
            .await
            .map_err(timeout_error)??;
        loop {
            let batch = self.state.send_queue.pop_batch(MAX_BATCH).await;
            let n_sent = batch.len() as u64;
            let mut pipe = redis::pipe();
            for (n, body) in batch {
                if let Some(bytes) = self.cipher.encrypt(self.state.node, n, &body) {
                    pipe.cmd("PUBLISH").arg(&self.channel).arg(bytes).ignore();
                }
            }
            let sending = pipe.exec_async(&mut connection);
            let sent = timeout(REDIS_TIMEOUT, sending).await.map_err(timeout_error);
            if let Err(error) | Ok(Err(error)) = sent {
                self.state.metrics.dropped.inc_by(n_sent);
                return Err(error);
            }
            self.state.metrics.sent.inc_by(n_sent);
            *backoff = RECONNECT_WAITS.build();
        }
    }

    /// Announces the shutdown, so that other nodes need not wait until our presence expires.
    async fn send_departure(&self) {
        self.send(ClusterSignal::Closing);
        let mut backoff = RECONNECT_WAITS.build();
        let sending = self.send_until_error(&mut backoff);
        // The sender runs until an error: this is how long it may take.
        drop(timeout(Duration::from_millis(200), sending).await);
    }

    async fn run_receiver(&self) {
        let mut backoff = RECONNECT_WAITS.build();
        loop {
            let Err(error) = self.receive_until_error(&mut backoff).await;
            if self.state.metrics.connected.set(0) == 1 {
                tracing::warn!(%error, "lost connection to Redis; cluster events are delayed until it is back: {error}");
                self.receiver.on_gap();
            }
            sleep(backoff.next().unwrap_or_default()).await;
        }
    }

    async fn receive_until_error(
        &self,
        backoff: &mut ExponentialBackoff,
    ) -> RedisResult<std::convert::Infallible> {
        let subscribing = async {
            let mut pubsub = self.client.get_async_pubsub().await?;
            pubsub.subscribe(&self.channel).await?;
            RedisResult::Ok(pubsub)
        };
        let pubsub = timeout(REDIS_TIMEOUT, subscribing)
            .await
            .map_err(timeout_error)??;
        let mut messages = pubsub.into_on_message();
        self.state.metrics.connects.inc();
        self.state.metrics.connected.set(1);
        tracing::info!("connected to Redis; receiving events of other nodes");
        self.send(ClusterSignal::Heartbeat { is_new: true });
        self.receiver.on_connected();
        self.receiver.on_gap();
        let mut peers = PeerSequences::default();
        loop {
            let next = timeout(SILENCE_TIMEOUT, messages.next())
                .await
                .map_err(timeout_error)?;
            let message = next.ok_or_else(connection_closed_error)?;
            *backoff = RECONNECT_WAITS.build();
            self.handle_message(message.get_payload_bytes(), &mut peers);
        }
    }

    fn handle_message(&self, bytes: &[u8], peers: &mut PeerSequences) {
        let meter = &self.state.metrics;
        let Some(ClusterMessage { from, n, body }) = self.cipher.decrypt(bytes) else {
            meter.foreign.inc();
            return;
        };
        if from == self.state.node {
            return;
        }
        meter.received.inc();
        match peers.record(from, n) {
            SequenceCheck::Next => {}
            SequenceCheck::AfterGap => {
                meter.gaps.inc();
                self.receiver.on_gap();
            }
            SequenceCheck::Old => {
                meter.repeated.inc();
                if !is_useful_late(&body) {
                    return;
                }
            }
        }
        self.receiver.receive(from, body);
    }
}

/// Returns whether a late message is still useful: checking rights twice is harmless, and the `rev`
/// of a durable event gives its position. Everything else only makes sense in order.
fn is_useful_late(body: &MessageBody) -> bool {
    let MessageBody::Envelope(envelope) = body else {
        return false;
    };
    matches!(
        envelope.payload,
        Payload::Control(_) | Payload::Frame { rev: Some(_), .. }
    )
}

fn timeout_error(_: tokio::time::error::Elapsed) -> RedisError {
    std::io::Error::from(std::io::ErrorKind::TimedOut).into()
}

fn connection_closed_error() -> RedisError {
    std::io::Error::from(std::io::ErrorKind::BrokenPipe).into()
}
