//! The two connections to Redis: one sends what waits, the other hears what the others sent.
//!
//! Either comes back by itself, after a wait that grows to [`LONGEST_WAIT`] and differs from node
//! to node. A connection that only seems to live is found by silence: a node hears its own beat.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use redis::{AsyncConnectionConfig, Client, RedisError, RedisResult};
use tokio::time::{MissedTickBehavior, sleep, timeout};

use crate::realtime::cluster::bus::{BusState, ClusterReceiver};
use crate::realtime::cluster::message::{ClusterMessage, MessageBody, MessageCipher};
use crate::realtime::cluster::sequence::{PeerSequences, SequenceCheck};
use crate::realtime::cluster::signal::ClusterSignal;
use crate::realtime::event::Payload;
use crate::shutdown::Shutdown;

/// Redis answers within this, or the connection is begun anew.
const REDIS_TIMEOUT: Duration = Duration::from_secs(1);
/// A node hears at least its own beat this often.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// Who hears nothing at all for so long hears nobody.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(4);
const MIN_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(2);
/// Packets that travel together.
const MAX_BATCH: usize = 64;

/// How a house speaks over Redis.
pub struct ClusterSettings {
    /// `redis://…` or `rediss://…`.
    pub url: String,
    /// Which house this is: only its nodes use this channel.
    pub channel: String,
    /// What all its nodes share.
    pub secret: String,
}

/// The parts of the link.
struct RedisLink {
    client: Client,
    channel: String,
    cipher: MessageCipher,
    state: Arc<BusState>,
    receiver: Arc<dyn ClusterReceiver>,
}

/// A client for an address.
///
/// # Errors
/// When this is no address of a Redis.
pub fn create_client(url: &str) -> RedisResult<Client> {
    Client::open(url)
}

/// Sends and hears until the house closes.
///
/// # Errors
/// When `url` is no address of a Redis. One that does not answer is no error: it may come.
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
            self.send(ClusterSignal::Beat { is_new: false });
        }
    }

    fn send(&self, signal: ClusterSignal) {
        self.state.send_queue.push(MessageBody::Signal(signal));
    }

    async fn run_sender(&self) {
        let mut backoff = Backoff::new();
        loop {
            let Err(error) = self.send_until_error(&mut backoff).await;
            tracing::debug!(%error, "what waits for other nodes could not be sent: {error}");
            backoff.wait().await;
        }
    }

    async fn send_until_error(
        &self,
        backoff: &mut Backoff,
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
            for (n, parcel) in batch {
                if let Some(bytes) = self.cipher.encrypt(self.state.node, n, &parcel) {
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
            backoff.reset();
        }
    }

    /// The others need not wait until our presence runs out.
    async fn send_departure(&self) {
        self.send(ClusterSignal::Gone);
        let mut backoff = Backoff::new();
        let sending = self.send_until_error(&mut backoff);
        // It goes on until it breaks: this is how long it may take.
        drop(timeout(Duration::from_millis(200), sending).await);
    }

    async fn run_receiver(&self) {
        let mut backoff = Backoff::new();
        loop {
            let Err(error) = self.receive_until_error(&mut backoff).await;
            if self.state.metrics.connected.set(0) == 1 {
                tracing::warn!(%error, "other nodes are not heard any more: {error}");
                self.receiver.on_gap();
            }
            backoff.wait().await;
        }
    }

    async fn receive_until_error(
        &self,
        backoff: &mut Backoff,
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
        tracing::info!("other nodes are heard over Redis");
        self.send(ClusterSignal::Beat { is_new: true });
        self.receiver.on_connected();
        self.receiver.on_gap();
        let mut peers = PeerSequences::default();
        loop {
            let next = timeout(SILENCE_TIMEOUT, messages.next())
                .await
                .map_err(timeout_error)?;
            let message = next.ok_or_else(connection_closed_error)?;
            backoff.reset();
            self.handle_message(message.get_payload_bytes(), &mut peers);
        }
    }

    fn handle_message(&self, bytes: &[u8], peers: &mut PeerSequences) {
        let meter = &self.state.metrics;
        let Some(ClusterMessage {
            from,
            n,
            body: parcel,
        }) = self.cipher.decrypt(bytes)
        else {
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
                if !is_useful_late(&parcel) {
                    return;
                }
            }
        }
        self.receiver.receive(from, parcel);
    }
}

/// Rights that are looked at twice do no harm; nor does a durable event, whose `rev` says where it
/// belongs. All else makes sense in its order alone.
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

/// The wait before the next try: twice the last one, and never the same on two nodes.
struct Backoff(Duration);

impl Backoff {
    fn new() -> Self {
        Self(MIN_BACKOFF)
    }

    fn reset(&mut self) {
        self.0 = MIN_BACKOFF;
    }

    async fn wait(&mut self) {
        sleep(self.0.mul_f64(rand::random_range(0.5..1.0))).await;
        self.0 = (self.0 * 2).min(MAX_BACKOFF);
    }
}
