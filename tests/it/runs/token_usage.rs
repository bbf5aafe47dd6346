//! Tests the token usage of a run: reported by the provider, or estimated and marked so; counted
//! once in the space and the run, whatever its end.

use std::time::Duration;

use base::ids::{ConversationId, UserId};
use llm::tokens;
use serde_json::json;
use troupe::conversations::token_usage;
use troupe::runs::store::run;
use troupe::runs::store::run::{RunStatus, RunUsage};

use crate::support::backends::{on_both, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::poll;

/// More tokens than any scripted model reports.
const FORTY_WORDS: &str = "one two three four five six seven eight nine ten eleven twelve thirteen \
    fourteen fifteen sixteen seventeen eighteen nineteen twenty twenty-one twenty-two twenty-three \
    twenty-four twenty-five twenty-six twenty-seven twenty-eight twenty-nine thirty thirty-one \
    thirty-two thirty-three thirty-four thirty-five thirty-six thirty-seven thirty-eight forty end";

impl EngineTest {
    /// Asserts that the space is charged for its ended runs; returns how the only run ended.
    async fn counted_once(&self) -> (RunStatus, Option<RunUsage>) {
        let runs = self.runs().await;
        let ended = runs.iter().filter(|it| it.status.is_final());
        let all: i64 = ended.filter_map(|it| it.usage).map(RunUsage::total).sum();
        assert_eq!(self.tokens_used().await, all, "{runs:?}");
        let only = self.only_run().await;
        (only.status, only.usage)
    }

    /// Replaces the last reply of another conversation; returns the run when it has ended.
    async fn regenerate_in(&self, conversation: ConversationId) -> run::Model {
        let planned = self
            .engine
            .regenerate(conversation, None, "Eve".to_owned())
            .await;
        planned.expect("the last message is a reply");
        poll::until("the run ends", async || {
            let found = run::find_newest(self.db.reader(), conversation).await;
            found
                .expect("the database answers")
                .filter(|it| it.status.is_final())
        })
        .await
    }

    /// The prompt tokens of a request to the model.
    fn n_prompt_tokens(&self, request: usize) -> i64 {
        let body = self.upstream.body(request);
        let messages = body["messages"]
            .as_array()
            .expect("the request has no messages")
            .iter();
        let texts = messages.map(|it| {
            it["content"]
                .as_str()
                .expect("the message has no text")
                .to_owned()
        });
        texts.map(|it| tokens::count(&it)).sum()
    }

    async fn wait_until_streamed(&self, text: &str) {
        self.until("it has streamed", async |it| {
            let live = it.engine.live_text(it.conversation);
            live.is_some_and(|it| it.text == text)
        })
        .await;
    }

    async fn post_and_settle(&self) {
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
        let app = EngineTest::builder(backend).open().await;
        let thought = json!({"reasoning_content": "Let me count. "});
        app.upstream.always(ResponseScript::stream().role().delta(thought).words("One two.").finish("stop").done());

        app.post_and_settle().await;

        let expected = estimated(app.n_prompt_tokens(0), "Let me count. One two.");
        assert_eq!(app.counted_once().await, (RunStatus::Succeeded, expected));
        app.close().await;
    }

    async fn a_stopped_reply_is_counted_once_whether_its_text_is_kept_or_not(backend) {
        for keep_partial in [false, true] {
            let app = EngineTest::builder(backend).open().await;
            app.upstream.always(ResponseScript::stream().role().words(FORTY_WORDS).hang());
            app.user.post("Count.").await;
            app.wait_until_streamed(FORTY_WORDS).await;

            app.engine.stop(app.conversation, keep_partial).await.unwrap();
            app.settle().await;

            let expected = estimated(app.n_prompt_tokens(0), FORTY_WORDS);
            assert_eq!(app.counted_once().await, (RunStatus::Canceled, expected));
            app.close().await;
        }
    }

    async fn a_reply_that_fails_after_forty_words_is_charged_for_them(backend) {
        for fails in [
            ResponseScript::stream().role().words(FORTY_WORDS),
            ResponseScript::stream().role().words(FORTY_WORDS).error("The engine overheated."),
        ] {
            let app = EngineTest::builder(backend).open().await;
            app.upstream.always(fails);

            app.post_and_settle().await;

            let expected = estimated(app.n_prompt_tokens(0), FORTY_WORDS);
            assert_eq!(app.counted_once().await, (RunStatus::Failed, expected));
            app.close().await;
        }
    }

    async fn a_reply_that_is_cut_at_the_size_limit_is_estimated(backend) {
        let app = EngineTest::builder(backend)
            .settings(|it| it.call_limits.max_text_bytes = 1_000)
            .open()
            .await;
        let flood = "data: {\"choices\": [{\"delta\": {\"content\": \"na na na na na \"}}]}\n\n";
        app.upstream.always(ResponseScript::stream().forever(flood, Duration::ZERO));

        app.post_and_settle().await;

        let (status, usage) = app.counted_once().await;
        let usage = usage.expect("no usage was stored");
        assert_eq!((status, usage.estimated), (RunStatus::Succeeded, true));
        assert!((200..1_000).contains(&usage.completion_tokens), "{usage:?}");
        app.close().await;
    }

    async fn a_rejected_model_call_is_not_charged(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.upstream.always(ResponseScript::status(400));

        app.post_and_settle().await;

        assert_eq!(app.counted_once().await, (RunStatus::Failed, None));
        app.close().await;
    }

    async fn every_answered_model_call_is_charged_including_retried_ones(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.upstream.next(ResponseScript::status(503));
        app.upstream.next(ResponseScript::stream().role().reset());
        app.upstream.next(ResponseScript::say("One two."));

        app.post_and_settle().await;

        let expected = Some(RunUsage {
            prompt_tokens: app.n_prompt_tokens(1) + 7,
            completion_tokens: 2,
            estimated: true,
        });
        assert_eq!(app.counted_once().await, (RunStatus::Succeeded, expected));
        assert_eq!(app.upstream.n_requests(), 3);
        app.close().await;
    }

    async fn absurd_and_negative_reports_are_clamped(backend) {
        for (prompt, completion, counted) in [
            (i64::MAX, i64::MAX, Some((1_000_000_000, 1_000_000_000))),
            (i64::MIN, -1, None),
        ] {
            let app = EngineTest::builder(backend).open().await;
            let said = ResponseScript::stream().role().words("One two.").finish("stop");
            let usage = json!({"prompt_tokens": prompt, "completion_tokens": completion});
            app.upstream.always(said.event(&json!({"choices": [], "usage": usage})).done());

            app.post_and_settle().await;

            let expected = match counted {
                Some((prompt_tokens, completion_tokens)) => Some(RunUsage {
                    prompt_tokens,
                    completion_tokens,
                    estimated: false,
                }),
                None => estimated(app.n_prompt_tokens(0), "One two."),
            };
            assert_eq!(app.counted_once().await, (RunStatus::Succeeded, expected));
            app.close().await;
        }
    }

    async fn the_usage_of_a_requeued_run_includes_its_interrupted_attempt(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.upstream.next(ResponseScript::stream().role().words("One").hang());
        app.user.post("Count.").await;
        app.events.wait_for_text("One").await;

        app.engine.drain(Duration::ZERO).await;

        let handed_back = app.only_run().await;
        assert_eq!(handed_back.status, RunStatus::Queued);
        assert_eq!(handed_back.usage, estimated(app.n_prompt_tokens(0), "One"));
        assert_eq!(app.tokens_used().await, 0, "an unfinished run was charged");
        let node = app.another_node();
        app.upstream.next(ResponseScript::say("One two."));
        node.start().await.unwrap();
        app.until("it is answered", async |it| it.only_run().await.status == RunStatus::Succeeded).await;
        let expected = run::RunUsage::sum(handed_back.usage, Some(RunUsage {
            prompt_tokens: 7,
            completion_tokens: 2,
            estimated: false,
        }));
        assert_eq!(app.counted_once().await, (RunStatus::Succeeded, expected));
        app.stop(&node).await;
        app.close_without_events().await;
    }

    async fn a_requeued_run_that_is_canceled_is_charged(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.upstream.next(ResponseScript::stream().role().words("One").hang());
        app.user.post("Count.").await;
        app.events.wait_for_text("One").await;
        app.engine.drain(Duration::ZERO).await;

        app.engine.stop(app.conversation, false).await.unwrap();

        let expected = estimated(app.n_prompt_tokens(0), "One");
        assert_eq!(app.counted_once().await, (RunStatus::Canceled, expected));
        app.close_without_events().await;
    }

    async fn a_run_that_was_canceled_while_its_node_closes_is_charged(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.upstream.next(ResponseScript::stream().role().words("One").hang());
        app.user.post("Count.").await;
        app.events.wait_for_text("One").await;
        // Its heartbeat has not noticed this yet when the node closes.
        app.another_node().stop(app.conversation, false).await.unwrap();

        app.engine.drain(Duration::ZERO).await;

        let expected = estimated(app.n_prompt_tokens(0), "One");
        assert_eq!(app.counted_once().await, (RunStatus::Canceled, expected));
        app.close_without_events().await;
    }
}

on_both! {
    async fn a_space_counts_all_conversations_even_deleted_ones_and_a_branch_starts_at_zero(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.upstream.reply_with("One two three.");
        app.user.post("Count.").await;
        app.settle().await;
        assert_eq!(app.tokens_used().await, 10);
        let last = app.messages().await.pop().expect("a reply");
        let branch = app.engine.branch(app.conversation, last.id, String::new()).await.unwrap();
        assert_eq!(app.tokens_used().await, 10, "a branch costs nothing");
        app.regenerate_in(branch.id).await;
        assert_eq!(app.tokens_used().await, 20, "the run of the branch was not charged exactly once");

        app.engine.delete_conversation(branch.id, UserId(1)).await.unwrap().expect("it is deleted");

        assert_eq!(app.tokens_used().await, 20);
        app.close_without_events().await;
    }

    async fn tokens_that_arrive_after_the_deletion_of_a_conversation_are_charged_to_its_space(backend) {
        let app = EngineTest::builder(backend).open().await;
        let (space, conversation) = (app.space, app.conversation);
        token_usage::add_tokens(app.db.heartbeat_connection(), space, conversation, 3).await.unwrap();
        assert_eq!(app.tokens_used().await, 3);
        app.engine.delete_conversation(conversation, UserId(1)).await.unwrap().expect("it is deleted");
        assert_eq!(app.tokens_used().await, 3);

        token_usage::add_tokens(app.db.heartbeat_connection(), space, conversation, 5).await.unwrap();

        assert_eq!(app.tokens_used().await, 8);
        app.close_without_events().await;
    }

    async fn a_reply_to_a_conversation_that_is_being_deleted_is_charged_to_it(backend) {
        let app = EngineTest::builder(backend).open().await;
        let gate = app.upstream.gate();
        let script = ResponseScript::stream().role().words("One").held_at(&gate);
        app.upstream.next(script.finish("stop").usage(7, 3).done());
        app.user.post("Count.").await;
        app.upstream.wait_for_requests(1).await;
        let mut facts = app.facts().await;
        // As the job that deletes it does.
        facts.execute("UPDATE conversations SET is_hidden = TRUE").await;
        facts.execute("DELETE FROM conversation_runs; DELETE FROM conversation_rounds").await;

        gate.open();

        poll::until("the reply is charged", async || (app.tokens_used().await == 10).then_some(())).await;
        app.close_without_events().await;
    }

    async fn a_run_that_is_still_running_in_a_hidden_conversation_is_canceled_and_charged(backend) {
        let app = EngineTest::builder(backend).open().await;
        let gate = app.upstream.gate();
        let script = ResponseScript::stream().role().words("One").held_at(&gate);
        app.upstream.next(script.finish("stop").usage(7, 3).done());
        app.user.post("Count.").await;
        app.upstream.wait_for_requests(1).await;
        app.facts().await.execute("UPDATE conversations SET is_hidden = TRUE").await;

        gate.open();

        poll::until("the reply is charged", async || (app.tokens_used().await == 10).then_some(())).await;
        assert_eq!(app.only_run().await.status, RunStatus::Canceled);
        app.close_without_events().await;
    }

    async fn a_space_at_its_limit_fails_the_runs_of_every_conversation(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.change_rules(|it| it.token_limit = 11).await;
        app.upstream.reply_with("One two three.");
        app.user.post("Count.").await;
        app.settle().await;
        assert_eq!(app.tokens_used().await, 10);
        let last = app.messages().await.pop().expect("a reply");
        let branch = app.engine.branch(app.conversation, last.id, String::new()).await.unwrap();

        let below_limit = app.regenerate_in(branch.id).await;
        let at_limit = app.regenerate_in(branch.id).await;

        assert_eq!(below_limit.error, None);
        let error = at_limit.error.expect("the run succeeded");
        assert_eq!(error.code, "token_limit_exceeded");
        app.close_without_events().await;
    }
}
