//! Tests the deadlines of request bodies on a paused clock.

use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use actix_web::error::PayloadError;
use actix_web::web::Bytes;
use futures::StreamExt;
use tokio::time::{Instant, sleep};

use super::{PacedBody, is_timeout};
use crate::config::Config;
use crate::rate_limit::body_timeouts::BodyTimeouts;
use crate::rate_limit::connections::Connections;

/// Receives pieces of a body, each after a delay.
async fn receive_body(rate: u32, pieces: Vec<(Duration, usize)>) -> Result<usize, Duration> {
    let config = Config::read(|_| None).unwrap();
    receive_body_with(Arc::new(Connections::new(&config, None)), rate, pieces).await
}

/// Returns how many bytes arrived, or when the body was aborted.
async fn receive_body_with(
    connections: Arc<Connections>,
    rate: u32,
    pieces: Vec<(Duration, usize)>,
) -> Result<usize, Duration> {
    let began = Instant::now();
    let pieces = pieces.into_iter();
    let source = pin!(futures::stream::unfold(pieces, async |mut pieces| {
        let (after, n_bytes) = pieces.next()?;
        sleep(after).await;
        Some((Ok::<_, PayloadError>(Bytes::from(vec![0; n_bytes])), pieces))
    }));
    let mut body = PacedBody::new(source, (BodyTimeouts::default(), rate), connections);
    let mut n_bytes = 0;
    while let Some(piece) = body.next().await {
        match piece {
            Ok(piece) => n_bytes += piece.len(),
            Err(error) => {
                assert!(is_timeout(&error));
                return Err(began.elapsed());
            }
        }
    }
    Ok(n_bytes)
}

fn every(seconds: u64, n_bytes: usize, n: usize) -> Vec<(Duration, usize)> {
    vec![(Duration::from_secs(seconds), n_bytes); n]
}

#[tokio::test(start_paused = true)]
async fn a_body_may_take_ten_seconds_at_any_speed() {
    assert_eq!(receive_body(1_000, every(1, 1, 9)).await, Ok(9));
    assert_eq!(receive_body(1_000, every(9, 1, 1)).await, Ok(1));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_trickles_is_aborted_after_ten_seconds() {
    let ten = Duration::from_secs(10);

    assert_eq!(receive_body(1_000, every(1, 1, 400)).await, Err(ten));
    assert_eq!(receive_body(1_000, every(60, 1, 1)).await, Err(ten));
    assert_eq!(receive_body(16_000, every(1, 15_000, 400)).await, Err(ten));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_keeps_the_rate_may_take_longer() {
    assert_eq!(receive_body(1_000, every(1, 1_100, 100)).await, Ok(110_000));
    // Four pieces per second, as a connection delivers them: not one piece per second.
    let even = vec![(Duration::from_millis(250), 4_250); 240];
    assert_eq!(receive_body(16_000, even).await, Ok(1_020_000));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_begins_fast_and_stalls_is_aborted_when_its_bytes_are_used_up() {
    let mut pieces = every(0, 30_000, 1);
    pieces.extend(every(60, 1, 1));

    let result = receive_body(1_000, pieces).await;

    assert_eq!(result, Err(Duration::from_secs(30)));
}

#[tokio::test(start_paused = true)]
async fn while_connections_are_scarce_a_body_has_one_second() {
    let config = Config::read(|_| None).unwrap();
    let connections = Arc::new(Connections::new(&config, Some(100)));
    let own: IpAddr = "127.0.0.1".parse().unwrap();
    let _open: Vec<_> = (0..26).map(|_| connections.admit(own)).collect();
    assert!(connections.is_crowded());

    let result = receive_body_with(connections, 1_000, every(1, 1, 400)).await;

    assert_eq!(result, Err(Duration::from_secs(1)));
}
