//! Tests when the stream of a chat completion begins, in virtual time, and how it ends.

use actix_web::body;
use base::clock::Timestamp;
use responses_api::fold::chat_fold::ChatFold;
use responses_api::fold::chat_objects::CompletionHeader;
use responses_api::fold::engine_event::{EngineEvent, ResponseEnd, ResponseOutcome};
use responses_api::response::ResponseError;
use tokio::sync::oneshot;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::start;
use crate::responses::execution::event_stream;
use crate::responses::execution::event_stream::EventSender;
use crate::responses::execution::projection::Projection;
use crate::responses::foreground::chat_choices::StreamedChat;
use crate::responses::foreground::foreground_task::PendingResponse;
use crate::web::v1::sse::{KEEP_ALIVE, KEEP_ALIVE_INTERVAL};

/// The task of one choice.
struct Choice {
    fold: ChatFold,
    chunks: EventSender,
    result: oneshot::Sender<Projection>,
}

impl Choice {
    fn push(&mut self, event: EngineEvent) {
        let chunks = self.fold.apply(event);
        self.chunks.push(chunks);
    }

    fn say(&mut self, text: &str) {
        self.push(EngineEvent::TextDelta(text.to_owned()));
    }

    fn end(mut self, outcome: ResponseOutcome) {
        self.push(EngineEvent::Finished(ResponseEnd {
            outcome,
            usage: None,
            at: Timestamp(0),
        }));
        drop(self.chunks);
        assert!(
            self.result
                .send(Projection::Chat(Box::new(self.fold)))
                .is_ok()
        );
    }
}

fn header() -> CompletionHeader {
    CompletionHeader {
        id: "chatcmpl-1".to_owned(),
        created: 1,
        model: "m".to_owned(),
        include_usage: false,
    }
}

/// Returns a chat with this many choices, and their tasks.
fn chat(n_choices: usize) -> (Vec<Choice>, StreamedChat) {
    let choice = |index| {
        let (chunks, reader) = event_stream::channel(CancellationToken::new());
        let (result, pending) = PendingResponse::for_test();
        let fold = ChatFold::new(header(), index);
        let task = Choice {
            fold,
            chunks,
            result,
        };
        (task, (reader, pending))
    };
    let (tasks, choices) = (0..n_choices).map(choice).unzip();
    let header = header();
    (tasks, StreamedChat { header, choices })
}

fn failure(code: &str) -> ResponseOutcome {
    ResponseOutcome::Failed(ResponseError {
        code: code.to_owned(),
        message: "It failed.".to_owned(),
    })
}

/// Returns the whole body of a stream.
async fn read(chat: StreamedChat) -> String {
    let answer = start(chat).await.expect("the stream begins");
    let bytes = body::to_bytes(answer.into_body()).await;
    String::from_utf8(bytes.expect("the stream is not cut").to_vec()).unwrap()
}

fn keep_alive() -> &'static str {
    std::str::from_utf8(KEEP_ALIVE).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_slow_first_chunk_follows_a_comment_every_fifteen_seconds() {
    let (mut tasks, chat) = chat(1);
    let mut task = tasks.remove(0);
    let model = async {
        sleep(KEEP_ALIVE_INTERVAL * 5 / 2).await;
        task.say("Late.");
        task.end(ResponseOutcome::Completed);
    };

    let (text, ()) = tokio::join!(read(chat), model);

    assert!(text.starts_with(&keep_alive().repeat(2)), "{text}");
    assert_eq!(text.matches(keep_alive()).count(), 2);
    assert!(text.contains("Late.") && text.ends_with("data: [DONE]\n\n"));
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_an_http_error_only_before_the_first_comment() {
    for (wait, is_http_error) in [
        (KEEP_ALIVE_INTERVAL / 2, true),
        (KEEP_ALIVE_INTERVAL * 2, false),
    ] {
        let (mut tasks, chat) = chat(1);
        let task = tasks.remove(0);
        let model = async {
            sleep(wait).await;
            task.end(failure("rate_limit_exceeded"));
        };

        let (started, ()) = tokio::join!(
            async {
                match start(chat).await {
                    Ok(answer) => Ok(body::to_bytes(answer.into_body()).await.unwrap()),
                    Err(error) => Err(error.status),
                }
            },
            model
        );

        match started {
            Err(status) => assert_eq!((status, is_http_error), (429, true)),
            Ok(bytes) => {
                let text = String::from_utf8(bytes.to_vec()).unwrap();
                assert!(!is_http_error && text.starts_with(keep_alive()), "{text}");
                assert!(text.contains("\"rate_limit_exceeded\"") && !text.contains("[DONE]"));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_chunks_of_all_choices_are_sent_as_they_arrive() {
    let (mut tasks, chat) = chat(2);
    let (mut second, mut first) = (tasks.remove(1), tasks.remove(0));
    second.say("B");
    first.say("A");
    second.end(ResponseOutcome::Completed);
    first.end(ResponseOutcome::Completed);

    let text = read(chat).await;

    for part in [
        "\"index\":0",
        "\"index\":1",
        "\"content\":\"A\"",
        "\"content\":\"B\"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.matches("\"finish_reason\":\"stop\"").count(), 2);
    assert_eq!(text.matches("[DONE]").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_choice_that_fails_before_its_first_chunk_is_left_out_of_the_stream() {
    let (mut tasks, chat) = chat(2);
    let (mut second, first) = (tasks.remove(1), tasks.remove(0));
    first.end(failure("upstream_error"));
    second.say("B");
    second.end(ResponseOutcome::Completed);

    let text = read(chat).await;

    assert!(
        !text.contains("\"index\":0") && !text.contains("error"),
        "{text}"
    );
    assert!(text.contains("\"content\":\"B\"") && text.ends_with("data: [DONE]\n\n"));
}

#[tokio::test(start_paused = true)]
async fn a_choice_that_fails_later_ends_the_stream_after_the_other_choices() {
    let (mut tasks, chat) = chat(2);
    let (mut second, mut first) = (tasks.remove(1), tasks.remove(0));
    first.say("A");
    first.end(failure("upstream_error"));
    second.say("B");
    second.end(ResponseOutcome::Completed);

    let text = read(chat).await;

    let (before, error) = text.trim_end().rsplit_once("data: ").unwrap();
    assert!(before.contains("\"content\":\"B\""), "{text}");
    assert!(error.starts_with("{\"error\":") && !text.contains("[DONE]"));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_lost_chunks_is_cut() {
    let (mut tasks, chat) = chat(1);
    let mut task = tasks.remove(0);
    task.say(&"x".repeat(event_stream::MAX_BUFFERED_BYTES + 1));
    task.say("lost");
    task.end(ResponseOutcome::Cancelled);

    let answer = start(chat).await.map(|it| it.into_body());

    let read = body::to_bytes(answer.expect("the stream begins")).await;
    assert!(read.is_err());
}
