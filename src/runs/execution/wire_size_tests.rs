//! Counts the bytes that a viewer of a reply receives for each token, with both protocols of the
//! socket. `bin/bench wire` prints the counts.

#![expect(clippy::print_stdout, reason = "bin/bench shows the output")]

use std::sync::Arc;
use std::time::Duration;

use agent::sink::Sink;
use base::ids::{ConversationId, MembershipId, RunId};
use realtime::envelope::{Envelope, Event, Protocol, Receivers, StreamBoundary};
use realtime::hub::Hub;
use realtime::outbox::{NextItem, Outbox};
use realtime::topic::Topic;
use uuid::Uuid;

use crate::runs::events::{StreamComplete, TypingStart, TypingStop};
use crate::runs::execution::chunk_sink;
use crate::runs::execution::live_streams::LiveStreams;
use crate::runs::store::run::{RunKind, RunStatus};

/// Of an installation that has been used for years.
const HERE: ConversationId = ConversationId(1_000_000);
const RUN: RunId = RunId(Uuid::from_u128(1));

/// Tokens of English text, 4.7 bytes on average.
const TOKENS: [&str; 10] = [
    " the", " lantern", " hung", ",", " and", " snow", " fell", " slowly", " on", " door",
];

/// The time between two tokens: a model that writes 50 tokens a second.
const TOKEN_INTERVAL: Duration = Duration::from_millis(20);

/// The default of `STREAM_SLICE_MS`.
const DEFAULT_SLICE: Duration = Duration::from_millis(50);

/// Returns the bytes of all frames of a stream of `n_tokens`, each with its WebSocket header, for a
/// viewer who reads as fast as the text is written.
async fn bytes_of_stream(n_tokens: usize, slice: Duration, protocol: Protocol) -> usize {
    let (hub, outbox) = (Hub::new(), Outbox::new());
    let topic = Topic::Conversation(HERE);
    hub.subscribe(topic, &outbox);
    let live = LiveStreams::new(hub.clone());
    let membership_id = MembershipId(1_000_000);
    let start = TypingStart {
        conversation_id: HERE,
        run_id: RUN,
        membership_id,
        kind: RunKind::UserTurn,
        target_message_id: None,
        base_length: None,
    };
    live.open(&start, 1, Receivers::Everyone);
    hub.publish(stream_event(&start, StreamBoundary::Start));

    let mut n_bytes = received_bytes(&outbox, protocol);
    let (mut sink, flusher) = chunk_sink::new(live, HERE, RUN, slice, || {});
    let write = async {
        for n in 0..n_tokens {
            sink.on_text(TOKENS[n % TOKENS.len()]);
            n_bytes += received_bytes(&outbox, protocol);
            tokio::time::sleep(TOKEN_INTERVAL).await;
            n_bytes += received_bytes(&outbox, protocol);
        }
    };
    tokio::select! {
        () = write => {}
        () = flusher.run() => {}
    }
    flusher.flush();
    let complete = StreamComplete {
        conversation_id: HERE,
        run_id: RUN,
        status: RunStatus::Succeeded,
    };
    let stop = TypingStop {
        conversation_id: HERE,
        run_id: RUN,
        membership_id,
    };
    hub.publish(stream_event(&complete, StreamBoundary::Complete));
    hub.publish(stream_event(&stop, StreamBoundary::Stop));
    n_bytes + received_bytes(&outbox, protocol)
}

fn stream_event(event: &impl Event, mark: StreamBoundary) -> Envelope {
    Envelope::stream(Topic::Conversation(HERE), event, (RUN.0, 1), mark)
}

/// Returns the bytes of the frames that are queued for a socket.
fn received_bytes(outbox: &Arc<Outbox>, protocol: Protocol) -> usize {
    let all = std::iter::from_fn(|| outbox.try_next());
    all.map(|next| match next {
        NextItem::Envelope(it) => framed_size(it.frame(protocol).expect("clients get it").len()),
        other => panic!("unexpected item: {other:?}"),
    })
    .sum()
}

/// Returns the size of a text frame of a server, which has no mask (RFC 6455, 5.2).
fn framed_size(n_bytes: usize) -> usize {
    let header = match n_bytes {
        ..=125 => 2,
        126..=65_535 => 4,
        _ => 10,
    };
    header + n_bytes
}

/// Returns the slope of the line through the logarithms of tokens and bytes.
fn growth(measured: &[(usize, usize)]) -> f64 {
    let points: Vec<(f64, f64)> = measured
        .iter()
        .map(|(tokens, bytes)| ((*tokens as f64).ln(), (*bytes as f64).ln()))
        .collect();
    let n = points.len() as f64;
    let mean_x = points.iter().map(|it| it.0).sum::<f64>() / n;
    let mean_y = points.iter().map(|it| it.1).sum::<f64>() / n;
    let covariance: f64 = points
        .iter()
        .map(|(x, y)| (x - mean_x) * (y - mean_y))
        .sum();
    let variance: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    covariance / variance
}

async fn bytes_per_token(slice: Duration, protocol: Protocol) -> f64 {
    bytes_of_stream(500, slice, protocol).await as f64 / 500.0
}

#[tokio::test(start_paused = true)]
async fn a_token_costs_a_viewer_of_protocol_2_few_bytes() {
    for (protocol, name) in [(Protocol::V1, "protocol 1"), (Protocol::V2, "protocol 2")] {
        let separate = bytes_per_token(Duration::ZERO, protocol).await;
        let sliced = bytes_per_token(DEFAULT_SLICE, protocol).await;
        println!("{name}: {separate:.1} bytes per token, {sliced:.1} with the default slices");
        if protocol == Protocol::V2 {
            assert!(separate <= 45.0, "{separate}");
            assert!(sliced <= 20.0, "{sliced}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_bytes_of_a_reply_grow_in_proportion_to_its_tokens() {
    for (slice, name) in [(Duration::ZERO, "one by one"), (DEFAULT_SLICE, "in slices")] {
        let mut measured = Vec::new();
        for n_tokens in [100, 200, 500, 1_000, 2_000, 4_000] {
            let n_bytes = bytes_of_stream(n_tokens, slice, Protocol::V2).await;
            measured.push((n_tokens, n_bytes));
        }

        let growth = growth(&measured);

        println!("growth from 100 to 4,000 tokens, {name}: {growth:.3}");
        assert!(growth <= 1.02, "{growth}: {measured:?}");
    }
}
