//! Tests invalid WebSocket frames and floods of valid ones: whatever one socket does, the others
//! are answered.

use std::time::Duration;

use serde_json::json;

use crate::support::backends::TestBackend;
use crate::support::http_client::{expect, id};
use crate::untrusted_input::installation::Installation;
use crate::untrusted_input::isolation::IsolatedServer;
use crate::untrusted_input::ws_peer::{
    BINARY, CLOSE, FIRST, LAST, MORE, PING, PONG, TEXT, WsPeer, frame,
};

/// Longer than any test, so that the count of frames is exact.
const NO_TIMEOUT: Duration = Duration::from_secs(100_000);

/// The memory that a flood of any size may use on the server, in KiB.
const MAX_GROWTH: u64 = 24 * 1024;

async fn start_server(frame_window: Duration) -> Installation {
    Installation::open_changed(TestBackend::Sqlite, |app| {
        app.socket_timeouts.frame_rate_window = frame_window;
    })
    .await
}

async fn peer(server: &Installation) -> WsPeer {
    let opened = WsPeer::open(&server.app.base, &server.key).await;
    opened.unwrap_or_else(|status| panic!("rejected with {status}"))
}

fn close_frame(code: u16, word: &[u8]) -> Vec<u8> {
    frame(CLOSE, &[&code.to_be_bytes(), word].concat())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_protocol_violation_closes_only_its_own_socket() {
    let server = start_server(NO_TIMEOUT).await;
    let mut other_peer = peer(&server).await;
    let mut broken: Vec<(String, Vec<u8>, u16)> = vec![
        ("no mask".into(), vec![TEXT, 2, b'{', b'}'], 1002),
        ("no mask, a ping".into(), vec![PING, 0], 1002),
        ("more of nothing".into(), frame(MORE, b"x"), 1002),
        ("the last of nothing".into(), frame(LAST, b"x"), 1002),
        (
            "a ping of 126 bytes".into(),
            frame(PING, &[b'x'; 126]),
            1002,
        ),
        (
            "a pong of 1000 bytes".into(),
            frame(PONG, &[b'x'; 1000]),
            1002,
        ),
        (
            "a closing of 126 bytes".into(),
            close_frame(1000, &[b'x'; 124]),
            1002,
        ),
        ("a ping in fragments".into(), frame(PING & 0x7f, b"x"), 1002),
        (
            "a closing in fragments".into(),
            frame(CLOSE & 0x7f, b""),
            1002,
        ),
        ("a closing of one byte".into(), frame(CLOSE, b"x"), 1002),
        (
            "a closing that is no text".into(),
            close_frame(1000, b"\xff\xfe"),
            1002,
        ),
        ("no UTF-8".into(), frame(TEXT, b"\"\xff\xfe\""), 1007),
        (
            "an overlong code".into(),
            frame(TEXT, b"\"\xc0\xaf\""),
            1007,
        ),
        ("a surrogate".into(), frame(TEXT, b"\"\xed\xa0\x80\""), 1007),
        (
            "no UTF-8 in fragments".into(),
            [frame(FIRST, b"\"\xff"), frame(LAST, b"\xfe\"")].concat(),
            1007,
        ),
        (
            "a text within a text".into(),
            [frame(FIRST, b"{"), frame(TEXT, b"{}")].concat(),
            1002,
        ),
        (
            "a length beyond all".into(),
            [&[TEXT, 0xff], &[0xff; 8][..], &[0; 4]].concat(),
            1009,
        ),
        (
            "a length of 64 KiB and one".into(),
            [&[TEXT, 0xff], &65_537_u64.to_be_bytes()[..], &[0; 4]].concat(),
            1009,
        ),
    ];
    for bit in [0x40, 0x20, 0x10] {
        broken.push((format!("reserved {bit:#x}"), frame(TEXT | bit, b"{}"), 1002));
        broken.push((
            format!("reserved in fragments {bit:#x}"),
            frame(FIRST | bit, b"{}"),
            1002,
        ));
    }
    for opcode in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
        broken.push((format!("opcode {opcode}"), frame(0x80 | opcode, b""), 1002));
    }
    for code in [0, 1, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65_535] {
        broken.push((format!("code {code}"), close_frame(code, b""), 1002));
    }

    let n = broken.len();
    for (what, bytes, code) in broken {
        let mut peer = peer(&server).await;
        peer.send(&bytes).await;

        assert_eq!(peer.closing().await, Some(code), "{what}");
    }

    for code in [1000, 1001, 3000, 4999] {
        let mut peer = peer(&server).await;
        peer.send(&close_frame(code, "bye 👋".as_bytes())).await;
        assert_eq!(
            peer.closing().await,
            Some(code),
            "the server must echo the close code"
        );
    }
    assert!(other_peer.is_answered().await);
    eprintln!("broken frames: {n} sockets");
    server.close_unharmed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_frame_may_be_fragmented_anywhere_with_pings_in_between() {
    let server = start_server(NO_TIMEOUT).await;
    let mut peer = peer(&server).await;
    let text = r#"{"id":1,"op":"ping","é👋":1}"#.as_bytes();

    for at in 1..text.len() {
        let fragments = [
            frame(FIRST, &text[..at]),
            frame(PING, b"?"),
            frame(LAST, &text[at..]),
        ];
        peer.send(&fragments.concat()).await;

        assert_eq!(peer.next().await, Some((PONG, b"?".to_vec())));
        assert_eq!(peer.answer().await["error"]["param"], "é👋");
    }
    server.close_unharmed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_thousand_frames_sixty_are_read_whatever_their_content() {
    let server = start_server(NO_TIMEOUT).await;
    let mut other_peer = peer(&server).await;
    let floods: [(&str, Vec<u8>, &str); 3] = [
        ("broken JSON", frame(TEXT, b"{"), "invalid_json"),
        ("bytes", frame(BINARY, &[0; 100]), "invalid_type"),
        (
            "no operation",
            frame(TEXT, br#"{"id":1,"op":"x"}"#),
            "invalid_value",
        ),
    ];

    for (what, flood, code) in floods {
        let mut peer = peer(&server).await;
        for _ in 0..1_000 {
            peer.send(&flood).await;
        }
        let (mut n_read, mut n_rejected) = (0, 0);
        for _ in 0..1_000 {
            let answer = peer.answer().await;
            match answer["error"]["code"].as_str() {
                Some("rate_limited") => n_rejected += 1,
                Some(found) if found == code => n_read += 1,
                _ => panic!("{what}: {answer}"),
            }
        }
        assert_eq!((n_read, n_rejected), (60, 940), "{what}");
        assert!(other_peer.is_answered().await, "{what}");
        eprintln!("{what}: 1000 frames, {n_read} read, {n_rejected} rate_limited");
    }
    server.close_unharmed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_flood_of_pings_sixty_are_answered() {
    let server = start_server(NO_TIMEOUT).await;
    let mut other_peer = peer(&server).await;
    let mut peer = peer(&server).await;
    let pings = frame(PING, b"are you there").repeat(1_000);

    for n in 0..100 {
        assert!(peer.send(&pings).await);
        assert!(n % 20 != 0 || other_peer.is_answered().await);
    }
    peer.send_text(r#"{"id":1,"op":"ping"}"#).await;

    let mut n_pongs = 0;
    while let Some((PONG, _)) = peer.next().await {
        n_pongs += 1;
    }
    assert_eq!(n_pongs, 60);
    eprintln!("100000 pings, {n_pongs} answered");
    server.close_unharmed().await;
}

/// A socket has a limited number of subscriptions; requests beyond it are rejected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_ten_thousand_subscriptions_two_hundred_are_granted() {
    let server = start_server(Duration::ZERO).await;
    let space = server.admin.create_space("Hall", json!({})).await;
    let path = format!("/api/spaces/{}/conversations", space["id"]);
    let mut conversations = Vec::new();
    for n in 0..201 {
        let conversation = server
            .admin
            .post(&path, json!({"title": format!("Room {n}")}));
        conversations.push(id(&expect(201, conversation.await)));
    }
    let mut peer = peer(&server).await;
    let subscribe = |conversation: i64| {
        format!(r#"{{"id":{conversation},"op":"subscribe","conversation_id":{conversation}}}"#)
    };

    for conversation in &conversations[..200] {
        peer.send_text(&subscribe(*conversation)).await;
        assert_eq!(peer.answer().await["ok"], true);
    }
    let last = conversations[200];
    let space = json!({"id": last, "op": "subscribe_space", "space_id": space["id"]});
    for n in 0..9_800 {
        let request = if n == 0 {
            space.to_string()
        } else {
            subscribe(last + n)
        };
        peer.send_text(&request).await;
        let answer = peer.answer().await;
        assert_eq!(answer["error"]["code"], "rate_limited", "{answer}");
    }

    let again = subscribe(conversations[7]);
    peer.send_text(&again).await;
    assert_eq!(
        peer.answer().await["ok"],
        true,
        "an existing subscription cannot be repeated"
    );
    let unsubscribe = json!({"id": 1, "op": "unsubscribe", "conversation_id": conversations[0]});
    peer.send_text(&unsubscribe.to_string()).await;
    assert_eq!(peer.answer().await["ok"], true);
    peer.send_text(&subscribe(last)).await;
    assert_eq!(
        peer.answer().await["ok"],
        true,
        "a freed subscription cannot be reused"
    );
    server.close_unharmed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_million_empty_fragments_do_not_accumulate_in_memory() {
    let isolated = IsolatedServer::start(TestBackend::Sqlite, &[]).await;
    let mut other_peer = isolated.peer().await;
    let mut peer = isolated.peer().await;
    let before = isolated.server.memory_kib();
    let empty = frame(MORE, b"").repeat(10_000);

    peer.send(&frame(FIRST, b"{\"id\":1,")).await;
    for n in 0..100 {
        assert!(peer.send(&empty).await);
        assert!(n % 20 != 0 || other_peer.is_answered().await);
    }
    peer.send(&frame(LAST, b"\"op\":\"ping\"}")).await;

    assert_eq!(
        peer.answer().await["ok"],
        true,
        "the fragments are not joined into one text"
    );
    let growth = isolated.server.memory_kib().saturating_sub(before);
    assert!(growth < MAX_GROWTH, "{growth} KiB");
    assert!(other_peer.is_answered().await);
    eprintln!("1000000 empty fragments: {growth} KiB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endless_fragmented_text_closes_the_socket_and_is_not_buffered() {
    let isolated = IsolatedServer::start(TestBackend::Sqlite, &[]).await;
    let mut other_peer = isolated.peer().await;
    let before = isolated.server.memory_kib();
    let fragment = frame(MORE, &[b' '; 32 * 1024]);
    let (mut n_sent, mut n_sockets) = (0, 0);

    while n_sent < 200 * 1024 * 1024 {
        let mut peer = isolated.peer().await;
        n_sockets += 1;
        peer.send(&frame(FIRST, b"{")).await;
        // The server sends its close frame, and closes the connection while the client still sends.
        while n_sent < 200 * 1024 * 1024 && peer.send(&fragment).await {
            n_sent += fragment.len();
        }
        assert_eq!(peer.closing().await, Some(1009));
        assert!(other_peer.is_answered().await);
    }

    let growth = isolated.server.memory_kib().saturating_sub(before);
    assert!(growth < MAX_GROWTH, "{growth} KiB");
    eprintln!("{n_sent} bytes in fragments over {n_sockets} sockets: {growth} KiB");
}
