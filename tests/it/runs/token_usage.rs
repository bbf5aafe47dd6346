//! Tests the token usage of a run: reported by the provider, or estimated and marked so; counted
//! once in the space and the run, whatever its end.

use std::time::Duration;

use llm::tokens;
use serde_json::json;
use troupe::runs::store::run;
use troupe::runs::store::run::{RunStatus, RunUsage};

use crate::support::backends::on_sqlite;
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::ResponseScript;

/// More tokens than any scripted model reports.
const FORTY_WORDS: &str = "one two three four five six seven eight nine ten eleven twelve thirteen \
    fourteen fifteen sixteen seventeen eighteen nineteen twenty twenty-one twenty-two twenty-three \
    twenty-four twenty-five twenty-six twenty-seven twenty-eight twenty-nine thirty thirty-one \
    thirty-two thirty-three thirty-four thirty-five thirty-six thirty-seven thirty-eight forty end";

impl EngineTest {
    /// The space has used what its ended runs cost; returns the usage of the only run.
    async fn counted_once(&self) -> (RunStatus, Option<RunUsage>) {
        let runs = self.runs().await;
        let ended = runs.iter().filter(|it| it.status.is_final());
        let all: i64 = ended.filter_map(|it| it.usage).map(RunUsage::total).sum();
        assert_eq!(self.tokens_used().await, all, "{runs:?}");
        let only = self.only_run().await;
        (only.status, only.usage)
    }

    /// The prompt tokens of a request to the model.
    fn sent(&self, request: usize) -> i64 {
        let body = self.upstream.body(request);
        let messages = body["messages"].as_array().expect("a prompt").iter();
        let texts = messages.map(|it| it["content"].as_str().expect("a text").to_owned());
        texts.map(|it| tokens::count(&it)).sum()
    }

    async fn has_streamed(&self, text: &str) {
        self.until("it has streamed", async |it| {
            let live = it.engine.live_text(it.conversation);
            live.is_some_and(|it| it.text == text)
        })
        .await;
    }

    async fn asks(&self) {
        self.user.post("Count.").await;
        self.settle().await;
    }
}

fn estimated(prompt_tokens: i64, received: &str) -> Option<RunUsage> {
    Some(RunUsage {
        prompt_tokens,
        completion_tokens: tokens::count(received),
        estimated: true,
    })
}

on_sqlite! {
    async fn a_reply_without_reported_usage_is_estimated_and_marked(backend) {
        let room = EngineTest::builder(backend).open().await;
        let thought = json!({"reasoning_content": "Let me count. "});
        room.upstream.always(ResponseScript::stream().role().delta(thought).words("One two.").finish("stop").done());

        room.asks().await;

        let expected = estimated(room.sent(0), "Let me count. One two.");
        assert_eq!(room.counted_once().await, (RunStatus::Succeeded, expected));
        room.close().await;
    }

    async fn a_stopped_reply_is_counted_once_whether_its_text_is_kept_or_not(backend) {
        for keep_partial in [false, true] {
            let room = EngineTest::builder(backend).open().await;
            room.upstream.always(ResponseScript::stream().role().words(FORTY_WORDS).hang());
            room.user.post("Count.").await;
            room.has_streamed(FORTY_WORDS).await;

            room.engine.stop(room.conversation, keep_partial).await.unwrap();
            room.settle().await;

            let expected = estimated(room.sent(0), FORTY_WORDS);
            assert_eq!(room.counted_once().await, (RunStatus::Canceled, expected));
            room.close().await;
        }
    }

    async fn a_reply_that_fails_after_forty_words_costs_them(backend) {
        for fails in [
            ResponseScript::stream().role().words(FORTY_WORDS),
            ResponseScript::stream().role().words(FORTY_WORDS).error("The engine overheated."),
        ] {
            let room = EngineTest::builder(backend).open().await;
            room.upstream.always(fails);

            room.asks().await;

            let expected = estimated(room.sent(0), FORTY_WORDS);
            assert_eq!(room.counted_once().await, (RunStatus::Failed, expected));
            room.close().await;
        }
    }

    async fn a_reply_that_is_cut_at_the_size_limit_is_estimated(backend) {
        let room = EngineTest::builder(backend)
            .settings(|it| it.call_limits.max_text_bytes = 1_000)
            .open()
            .await;
        let flood = "data: {\"choices\": [{\"delta\": {\"content\": \"na na na na na \"}}]}\n\n";
        room.upstream.always(ResponseScript::stream().forever(flood, Duration::ZERO));

        room.asks().await;

        let (status, usage) = room.counted_once().await;
        let usage = usage.expect("it was answered");
        assert_eq!((status, usage.estimated), (RunStatus::Succeeded, true));
        assert!((200..1_000).contains(&usage.completion_tokens), "{usage:?}");
        room.close().await;
    }

    async fn a_call_that_was_refused_costs_nothing(backend) {
        let room = EngineTest::builder(backend).open().await;
        room.upstream.always(ResponseScript::status(400));

        room.asks().await;

        assert_eq!(room.counted_once().await, (RunStatus::Failed, None));
        room.close().await;
    }

    async fn every_call_that_was_answered_counts_also_the_one_that_was_tried_again(backend) {
        let room = EngineTest::builder(backend).open().await;
        room.upstream.next(ResponseScript::status(503));
        room.upstream.next(ResponseScript::stream().role().reset());
        room.upstream.next(ResponseScript::say("One two."));

        room.asks().await;

        let expected = Some(RunUsage {
            prompt_tokens: room.sent(1) + 7,
            completion_tokens: 2,
            estimated: true,
        });
        assert_eq!(room.counted_once().await, (RunStatus::Succeeded, expected));
        assert_eq!(room.upstream.n_requests(), 3);
        room.close().await;
    }

    async fn absurd_and_negative_reports_are_clamped(backend) {
        for (prompt, completion, counted) in [
            (i64::MAX, i64::MAX, Some((1_000_000_000, 1_000_000_000))),
            (i64::MIN, -1, None),
        ] {
            let room = EngineTest::builder(backend).open().await;
            let said = ResponseScript::stream().role().words("One two.").finish("stop");
            let usage = json!({"prompt_tokens": prompt, "completion_tokens": completion});
            room.upstream.always(said.event(&json!({"choices": [], "usage": usage})).done());

            room.asks().await;

            let expected = match counted {
                Some((prompt_tokens, completion_tokens)) => Some(RunUsage {
                    prompt_tokens,
                    completion_tokens,
                    estimated: false,
                }),
                None => estimated(room.sent(0), "One two."),
            };
            assert_eq!(room.counted_once().await, (RunStatus::Succeeded, expected));
            room.close().await;
        }
    }

    async fn what_a_run_cost_before_it_was_handed_back_is_part_of_its_usage(backend) {
        let room = EngineTest::builder(backend).open().await;
        room.upstream.next(ResponseScript::stream().role().words("One").hang());
        room.user.post("Count.").await;
        room.events.wait_for_text("One").await;

        room.engine.drain(Duration::ZERO).await;

        let handed_back = room.only_run().await;
        assert_eq!(handed_back.status, RunStatus::Queued);
        assert_eq!(handed_back.usage, estimated(room.sent(0), "One"));
        assert_eq!(room.tokens_used().await, 0, "it has not ended");
        let node = room.another_node();
        room.upstream.next(ResponseScript::say("One two."));
        node.start().await.unwrap();
        room.until("it is answered", async |it| it.only_run().await.status == RunStatus::Succeeded).await;
        let expected = run::RunUsage::sum(handed_back.usage, Some(RunUsage {
            prompt_tokens: 7,
            completion_tokens: 2,
            estimated: false,
        }));
        assert_eq!(room.counted_once().await, (RunStatus::Succeeded, expected));
        room.stop(&node).await;
        room.close_without_events().await;
    }

    async fn what_was_handed_back_and_is_then_canceled_is_counted(backend) {
        let room = EngineTest::builder(backend).open().await;
        room.upstream.next(ResponseScript::stream().role().words("One").hang());
        room.user.post("Count.").await;
        room.events.wait_for_text("One").await;
        room.engine.drain(Duration::ZERO).await;

        room.engine.stop(room.conversation, false).await.unwrap();

        let expected = estimated(room.sent(0), "One");
        assert_eq!(room.counted_once().await, (RunStatus::Canceled, expected));
        room.close_without_events().await;
    }
}
