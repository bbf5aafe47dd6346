//! WebSocket frames: which ones are accepted, their limits, and their answers.

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::live::fixture::{LiveFixture, code};
use crate::support::ws_client::{Socket, WsClient, connect};

async fn answer(socket: &mut Socket) -> Value {
    match socket.next().await {
        Some(Ok(Message::Text(text))) => serde_json::from_str(&text).unwrap(),
        other => panic!("expected a text frame, got {other:?}"),
    }
}

/// Returns the code with which the server closes.
async fn closing(socket: &mut Socket) -> u16 {
    loop {
        match socket.next().await {
            Some(Ok(Message::Close(Some(frame)))) => return frame.code.into(),
            Some(Ok(_)) => {}
            other => panic!("expected a close frame, got {other:?}"),
        }
    }
}

#[tokio::test]
async fn every_frame_gets_one_answer_with_its_id() {
    let fixture = LiveFixture::open().await;
    let client = WsClient::open(&fixture.bob).await;

    for frame in [
        r#"{"id":0,"op":"ping"}"#,
        r#"{"id":-1.5,"op":"away","away":false}"#,
    ] {
        client.send_text(frame).await;
    }
    client
        .send_text(r#"{"id":7,"op":"unsubscribe","conversation_id":5}"#)
        .await;

    client.wait_for("the last answer", |it| it["re"] == 7).await;
    let log = client.log();
    assert_eq!(log.len(), 3);
    assert_eq!((&log[0]["re"], &log[0]["ok"]), (&json!(0), &json!(true)));
    assert_eq!(log[0]["time"], json!(fixture.house.app.clock.now()));
    assert_eq!(log[1], json!({"re": -1.5, "ok": true}));
    assert_eq!(log[2], json!({"re": 7, "ok": true}));
    fixture.close().await;
}

#[tokio::test]
async fn an_invalid_frame_gets_an_error_and_the_socket_stays_open() {
    let fixture = LiveFixture::open().await;
    let mut socket = connect(&fixture.bob).await.unwrap();
    let nonsense = [
        ("{", Value::Null, "invalid_json"),
        ("[]", Value::Null, "invalid_type"),
        (r#"{"op":"ping"}"#, Value::Null, "missing_field"),
        (r#"{"id":1}"#, json!(1), "missing_field"),
        (r#"{"id":2,"op":"dance"}"#, json!(2), "invalid_value"),
        (r#"{"id":3,"op":"ping","x":1}"#, json!(3), "unknown_field"),
        (
            r#"{"id":4,"op":"subscribe","conversation_id":"1"}"#,
            json!(4),
            "invalid_type",
        ),
    ];

    for (frame, re, expected) in nonsense {
        socket.send(Message::text(frame)).await.unwrap();
        let answer = answer(&mut socket).await;
        assert_eq!((&answer["re"], code(&answer)), (&re, expected), "{frame}");
    }
    socket.send(Message::binary(vec![1, 2, 3])).await.unwrap();
    assert_eq!(code(&answer(&mut socket).await), "invalid_type");
    socket
        .send(Message::text(r#"{"id":5,"op":"ping"}"#))
        .await
        .unwrap();
    assert_eq!(answer(&mut socket).await["ok"], true);
    fixture.close().await;
}

#[tokio::test]
async fn the_sixty_first_frame_in_ten_seconds_is_rejected() {
    let fixture = LiveFixture::open().await;
    let mut socket = connect(&fixture.bob).await.unwrap();
    for id in 1..=61 {
        let frame = format!(r#"{{"id":{id},"op":"ping"}}"#);
        socket.send(Message::text(frame)).await.unwrap();
    }

    for id in 1..=60 {
        assert_eq!(answer(&mut socket).await["re"], id);
    }
    let refused = answer(&mut socket).await;

    assert_eq!(
        (&refused["re"], code(&refused)),
        (&json!(61), "rate_limited")
    );
    fixture.close().await;
}

#[tokio::test]
async fn a_frame_is_limited_to_64_kib() {
    let fixture = LiveFixture::open().await;
    let mut socket = connect(&fixture.bob).await.unwrap();
    let padded = |length: usize| {
        let frame = r#"{"id":1,"op":"ping"}"#;
        format!("{frame}{}", " ".repeat(length - frame.len()))
    };

    socket.send(Message::text(padded(65_536))).await.unwrap();
    assert_eq!(answer(&mut socket).await["ok"], true);
    socket.send(Message::text(padded(65_537))).await.unwrap();

    assert_eq!(closing(&mut socket).await, 1009);
    fixture.close().await;
}

#[tokio::test]
async fn a_fragmented_message_is_limited_to_64_kib() {
    let fixture = LiveFixture::open().await;
    let mut socket = connect(&fixture.bob).await.unwrap();
    let piece = |code, is_last| {
        Message::Frame(Frame::message(
            vec![b' '; 40_000],
            OpCode::Data(code),
            is_last,
        ))
    };

    socket.send(piece(Data::Text, false)).await.unwrap();
    socket.send(piece(Data::Continue, false)).await.unwrap();

    assert_eq!(closing(&mut socket).await, 1009);
    fixture.close().await;
}

/// Opens a socket without a WebSocket library: it reads bytes and never answers.
async fn connect_raw(fixture: &LiveFixture) -> TcpStream {
    let address = fixture.house.base.trim_start_matches("http://");
    let mut peer = TcpStream::connect(address).await.unwrap();
    let upgrade = format!(
        "GET /ws HTTP/1.1\r\nHost: {address}\r\nOrigin: {}\r\nCookie: {}\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        fixture.house.base,
        fixture.bob.cookie()
    );
    peer.write_all(upgrade.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(peer.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101"));
    peer
}

#[tokio::test]
async fn a_frame_is_rejected_by_its_announced_length() {
    let fixture = LiveFixture::open().await;
    let mut peer = connect_raw(&fixture).await;

    // The header announces a text of one gibibyte; none of it is sent.
    let header = [0x81, 0xff, 0, 0, 0, 0, 0x40, 0, 0, 0, 1, 2, 3, 4];
    peer.write_all(&header).await.unwrap();

    let mut received = Vec::new();
    peer.read_to_end(&mut received).await.unwrap();
    assert_eq!(
        received[..4],
        [0x88, 11, 0x03, 0xf1],
        "a close frame with 1009"
    );
    fixture.close().await;
}

#[tokio::test]
async fn a_client_that_answers_no_ping_is_disconnected() {
    let fixture = LiveFixture::open_changed(&[], |app| {
        app.socket_timeouts.ping_interval = std::time::Duration::from_millis(40);
        app.socket_timeouts.silence_timeout = std::time::Duration::from_millis(150);
    })
    .await;
    let mut peer = connect_raw(&fixture).await;

    let mut received = Vec::new();
    peer.read_to_end(&mut received).await.unwrap();

    assert_eq!(received[..2], [0x89, 0], "a ping");
    assert!(received.ends_with(b"silent"));
    fixture.close().await;
}

#[tokio::test]
async fn a_client_that_answers_pings_stays_connected() {
    let fixture = LiveFixture::open_changed(&[], |app| {
        app.socket_timeouts.ping_interval = std::time::Duration::from_millis(20);
        app.socket_timeouts.silence_timeout = std::time::Duration::from_secs(2);
    })
    .await;
    let mut socket = connect(&fixture.bob).await.unwrap();
    let begin = std::time::Instant::now();

    // The library answers each ping when it reads it.
    while begin.elapsed().as_millis() < 3_000 {
        assert!(matches!(socket.next().await, Some(Ok(Message::Ping(_)))));
    }

    socket
        .send(Message::text(r#"{"id":1,"op":"ping"}"#))
        .await
        .unwrap();
    let answer = loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => break text,
            Some(Ok(_)) => {}
            other => panic!("the socket was closed: {other:?}"),
        }
    };
    assert!(answer.contains("\"ok\":true"));
    fixture.close().await;
}

#[tokio::test]
async fn a_websocket_ping_is_answered_with_its_payload() {
    let fixture = LiveFixture::open().await;
    let mut socket = connect(&fixture.bob).await.unwrap();

    socket
        .send(Message::Ping("are you there".into()))
        .await
        .unwrap();

    let pong = socket.next().await.unwrap().unwrap();
    assert_eq!(pong, Message::Pong("are you there".into()));
    fixture.close().await;
}
