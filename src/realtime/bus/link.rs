//! The two connections to Redis: one sends what waits, the other hears what the others sent.
//!
//! Either comes back by itself, after a wait that grows to [`LONGEST_WAIT`] and differs from node
//! to node. A connection that only seems to live is found by silence: a node hears its own beat.

use crate::realtime::bus::handle::Inbox;
use crate::realtime::bus::handle::Line;
use crate::realtime::bus::packet::Packet;
use crate::realtime::bus::packet::Parcel;
use crate::realtime::bus::packet::Seal;
use crate::realtime::bus::peers::Arrival;
use crate::realtime::bus::peers::Peers;
use crate::realtime::bus::signal::Signal;
use crate::realtime::event::Cargo;
use crate::shutdown::Shutdown;
use futures::StreamExt;
use redis::AsyncConnectionConfig;
use redis::Client;
use redis::RedisError;
use redis::RedisResult;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;
use tokio::time::sleep;
use tokio::time::timeout;

/// Redis answers within this, or the connection is begun anew.
const PATIENCE: Duration = Duration::from_secs(1);
/// A node hears at least its own beat this often.
const BEAT: Duration = Duration::from_secs(1);
/// Who hears nothing at all for so long hears nobody.
const SILENCE: Duration = Duration::from_secs(4);
const SHORTEST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// Packets that travel together.
const BATCH: usize = 64;

/// How a house speaks over Redis.
pub struct Settings {
    /// `redis://…` or `rediss://…`.
    pub url: String,
    /// Which house this is: only its nodes use this channel.
    pub channel: String,
    /// What all its nodes share.
    pub secret: String,
}

/// The parts of the link.
struct Link {
    client: Client,
    channel: String,
    seal: Seal,
    line: Arc<Line>,
    inbox: Arc<dyn Inbox>,
}

/// A client for an address.
///
/// # Errors
/// When this is no address of a Redis.
pub fn client(url: &str) -> RedisResult<Client> {
    Client::open(url)
}

/// Sends and hears until the house closes.
///
/// # Errors
/// When `url` is no address of a Redis. One that does not answer is no error: it may come.
pub fn start(
    settings: Settings,
    line: &Arc<Line>,
    inbox: Arc<dyn Inbox>,
    shutdown: &Shutdown,
) -> RedisResult<()> {
    let link = Arc::new(Link {
        client: client(&settings.url)?,
        channel: settings.channel,
        seal: Seal::new(&settings.secret),
        line: line.clone(),
        inbox,
    });
    let (sender, hearer, beater) = (link.clone(), link.clone(), link);
    let stopping = &shutdown.stopping;
    let (to_hear, to_beat, to_send) = (stopping.clone(), stopping.clone(), stopping.clone());
    shutdown.spawn(async move { to_hear.run_until_cancelled(hearer.keep_hearing()).await });
    shutdown.spawn(async move { to_beat.run_until_cancelled(beater.keep_beating()).await });
    shutdown.spawn(async move {
        to_send.run_until_cancelled(sender.keep_sending()).await;
        sender.say_goodbye().await;
    });
    Ok(())
}

impl Link {
    async fn keep_beating(&self) {
        let mut tick = tokio::time::interval(BEAT);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            self.say(Signal::Beat { is_new: false });
        }
    }

    fn say(&self, signal: Signal) {
        self.line.outgoing.put(Parcel::Signal(signal));
    }

    async fn keep_sending(&self) {
        let mut wait = Wait::new();
        loop {
            let Err(error) = self.send_until_it_breaks(&mut wait).await;
            tracing::debug!(%error, "what waits for other nodes could not be sent: {error}");
            wait.a_little().await;
        }
    }

    async fn send_until_it_breaks(&self, wait: &mut Wait) -> RedisResult<std::convert::Infallible> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        let connecting = self
            .client
            .get_multiplexed_async_connection_with_config(&config);
        let mut connection = timeout(PATIENCE, connecting).await.map_err(late)??;
        loop {
            let batch = self.line.outgoing.take(BATCH).await;
            let n_sent = batch.len() as u64;
            let mut pipe = redis::pipe();
            for (n, parcel) in batch {
                if let Some(bytes) = self.seal.close(self.line.node, n, &parcel) {
                    pipe.cmd("PUBLISH").arg(&self.channel).arg(bytes).ignore();
                }
            }
            let sending = pipe.exec_async(&mut connection);
            let sent = timeout(PATIENCE, sending).await.map_err(late);
            if let Err(error) | Ok(Err(error)) = sent {
                self.line.meter.dropped.inc_by(n_sent);
                return Err(error);
            }
            self.line.meter.sent.inc_by(n_sent);
            wait.is_over();
        }
    }

    /// The others need not wait until our presence runs out.
    async fn say_goodbye(&self) {
        self.say(Signal::Gone);
        let mut wait = Wait::new();
        let last_words = self.send_until_it_breaks(&mut wait);
        // It goes on until it breaks: this is how long it may take.
        drop(timeout(Duration::from_millis(200), last_words).await);
    }

    async fn keep_hearing(&self) {
        let mut wait = Wait::new();
        loop {
            let Err(error) = self.hear_until_it_breaks(&mut wait).await;
            if self.line.meter.connected.set(0) == 1 {
                tracing::warn!(%error, "other nodes are not heard any more: {error}");
                self.inbox.missed();
            }
            wait.a_little().await;
        }
    }

    async fn hear_until_it_breaks(&self, wait: &mut Wait) -> RedisResult<std::convert::Infallible> {
        let subscribing = async {
            let mut pubsub = self.client.get_async_pubsub().await?;
            pubsub.subscribe(&self.channel).await?;
            RedisResult::Ok(pubsub)
        };
        let pubsub = timeout(PATIENCE, subscribing).await.map_err(late)??;
        let mut messages = pubsub.into_on_message();
        self.line.meter.connects.inc();
        self.line.meter.connected.set(1);
        tracing::info!("other nodes are heard over Redis");
        self.say(Signal::Beat { is_new: true });
        self.inbox.tuned_in();
        self.inbox.missed();
        let mut peers = Peers::default();
        loop {
            let next = timeout(SILENCE, messages.next()).await.map_err(late)?;
            let message = next.ok_or_else(broken)?;
            wait.is_over();
            self.take(message.get_payload_bytes(), &mut peers);
        }
    }

    fn take(&self, bytes: &[u8], peers: &mut Peers) {
        let meter = &self.line.meter;
        let Some(Packet { from, n, parcel }) = self.seal.open(bytes) else {
            meter.foreign.inc();
            return;
        };
        if from == self.line.node {
            return;
        }
        meter.heard.inc();
        match peers.heard(from, n) {
            Arrival::Next => {}
            Arrival::AfterGap => {
                meter.gaps.inc();
                self.inbox.missed();
            }
            Arrival::Old => {
                meter.repeated.inc();
                if !is_worth_hearing_late(&parcel) {
                    return;
                }
            }
        }
        self.inbox.take(from, parcel);
    }
}

/// Rights that are looked at twice do no harm; nor does a durable event, whose `rev` says where it
/// belongs. All else makes sense in its order alone.
fn is_worth_hearing_late(parcel: &Parcel) -> bool {
    let Parcel::Envelope(envelope) = parcel else {
        return false;
    };
    matches!(
        envelope.cargo,
        Cargo::Order(_) | Cargo::Frame { rev: Some(_), .. }
    )
}

fn late(_: tokio::time::error::Elapsed) -> RedisError {
    std::io::Error::from(std::io::ErrorKind::TimedOut).into()
}

fn broken() -> RedisError {
    std::io::Error::from(std::io::ErrorKind::BrokenPipe).into()
}

/// The wait before the next try: twice the last one, and never the same on two nodes.
struct Wait(Duration);

impl Wait {
    fn new() -> Self {
        Self(SHORTEST_WAIT)
    }

    fn is_over(&mut self) {
        self.0 = SHORTEST_WAIT;
    }

    async fn a_little(&mut self) {
        sleep(self.0.mul_f64(rand::random_range(0.5..1.0))).await;
        self.0 = (self.0 * 2).min(LONGEST_WAIT);
    }
}
