//! Protocol 2 of the socket: short pieces of text, and everything else as in protocol 1.

use serde_json::Value;

use crate::live::fixture::LiveFixture;
use crate::support::fake_provider::server::FakeProvider;
use crate::support::short_frames::{expand, shown_stream};
use crate::support::ws_client::WsClient;
use crate::support::{api_contract, poll, timeline_model};

/// Words that are hard to count and to encode.
const REPLY: &str = "Hé l😀 o \"you\" 😀😀 \\n {\"h\":1} 漢字 and the end .";

/// Opens a socket in protocol 2, subscribed to the conversation.
async fn subscribed(fixture: &LiveFixture, after_rev: Option<i64>) -> WsClient {
    let client = WsClient::open_in_protocol_2(&fixture.bob).await;
    let answer = client.subscribe(fixture.conversation.0, after_rev).await;
    assert_eq!(answer["ok"], true, "{answer}");
    client
}

async fn wait_for_text(client: &WsClient, text: &str, read: impl Fn(&[Value]) -> Vec<Value>) {
    poll::until(&format!("the text is {text:?}"), async || {
        let shown = shown_stream(&read(&client.log()));
        shown.is_some_and(|it| it.text == text).then_some(())
    })
    .await;
}

#[tokio::test]
async fn both_protocols_read_the_same_text_over_reconnects() {
    let upstream = FakeProvider::start().await;
    upstream.reply_with(REPLY);
    let gate = upstream.gate();
    let fixture = LiveFixture::with_character(&upstream).await;
    let long = fixture.bobs_ws_client().await;
    let mut short = subscribed(&fixture, None).await;
    fixture.post(&fixture.ann, "Tell me a story.").await;
    // The run ends with the last word.
    let (words, _) = REPLY.rsplit_once(' ').expect("several words");
    let ends = words.match_indices(' ').map(|it| it.0);

    for (n, end) in ends.chain([words.len()]).enumerate() {
        gate.step();
        wait_for_text(&long, &words[..end], <[Value]>::to_vec).await;
        wait_for_text(&short, &words[..end], expand).await;
        if n % 3 == 2 {
            short.log().iter().for_each(api_contract::check_frame);
            drop(short);
            short = subscribed(&fixture, (n % 2 == 0).then_some(0)).await;
        }
    }

    gate.open();
    for client in [&long, &short] {
        let is_end = |it: &Value| it["type"] == "typing_stop";
        client.wait_for("the end of the run", is_end).await;
    }
    assert_eq!(shown_stream(&expand(&short.log())), None);
    fixture.close().await;
}

#[tokio::test]
async fn two_runs_of_one_conversation_do_not_mix_their_texts() {
    let fixture = LiveFixture::open().await;
    let client = subscribed(&fixture, None).await;

    for text in ["One.", "Two."] {
        let run = fixture.start_run();
        fixture.write_delta(run, text);
        let expected = timeline_model::Stream {
            run_id: run.to_string(),
            base: String::new(),
            text: text.to_owned(),
        };
        poll::until("the text has arrived", async || {
            (shown_stream(&expand(&client.log())).as_ref() == Some(&expected)).then_some(())
        })
        .await;
        fixture.end_run(run);
    }

    fixture.close().await;
}

#[tokio::test]
async fn all_frames_but_the_pieces_and_the_handle_are_those_of_protocol_1() {
    let fixture = LiveFixture::open().await;
    let long = WsClient::open(&fixture.bob).await;
    long.subscribe(fixture.conversation.0, None).await;
    let short = subscribed(&fixture, None).await;

    fixture.post(&fixture.ann, "One.").await;
    let run = fixture.start_run();
    fixture.write_delta(run, "Two.");
    for client in [&long, &short] {
        let is_piece = |it: &Value| it["type"] == "stream_chunk" || it.get("d").is_some();
        client.wait_for("the text", is_piece).await;
    }
    fixture.end_run(run);

    let mut logs = Vec::new();
    for client in [&long, &short] {
        let is_end = |it: &Value| it["type"] == "typing_stop";
        client.wait_for("the end of the run", is_end).await;
        logs.push(client.log());
    }
    let has = |log: &[Value], key: &str| log.iter().any(|it| it.get(key).is_some());
    assert!(!has(&logs[0], "h") && !has(&logs[0], "d"));
    assert!(has(&logs[1], "h") && has(&logs[1], "d"));
    let is_event = |it: &Value| it.get("re").is_none() && it["type"] != "presence_updated";
    let events = |log: Vec<Value>| -> Vec<Value> { log.into_iter().filter(is_event).collect() };
    let mut long = events(logs.swap_remove(0));
    for frame in &mut long {
        if frame["type"] == "stream_chunk" {
            frame
                .as_object_mut()
                .expect("an object")
                .shift_remove("conversation_id");
        }
    }
    assert_eq!(events(expand(&logs[0])), long);
    fixture.close().await;
}
