//! Tests messages that are out of character: people see them, models and the schedule do not.

use base::ids::MessageId;
use sea_orm::EntityTrait;
use troupe::conversations::audience::viewer::Viewer;
use troupe::conversations::{conversation, timeline};
use troupe::runs::engine::PostResult;
use troupe::runs::error::EngineError;
use troupe::runs::reading::views::ConversationState;
use troupe::runs::scheduling::command::{CommandError, ForcedTurn};
use troupe::runs::scheduling::messages::new_post::NewPost;
use troupe::runs::store::run::RunStatus;
use troupe::spaces::space::{InputPolicy, RepliesPerTurn, ReplyOrder};

use super::memories::FACT;
use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::engine_test::{EngineTest, TestUser};
use crate::support::explaining_connection::ExplainingConnection;
use crate::support::fake_provider::script::ResponseScript;

const DELAY_MS: i64 = 5_000;

impl TestUser {
    /// Posts a message with this mark.
    async fn post_marked(
        &self,
        text: &str,
        is_ooc: Option<bool>,
        client_id: Option<&str>,
    ) -> Result<PostResult, EngineError> {
        let post = NewPost {
            is_ooc,
            client_id: client_id.map(str::to_owned),
            ..NewPost::new(self.membership, text.to_owned())
        };
        self.send(post).await
    }
}

impl EngineTest {
    async fn mark(&self, message: MessageId, is_ooc: bool) -> Result<(), EngineError> {
        let id = self.conversation;
        let marked = self
            .engine
            .set_out_of_character((id, Viewer::Server), message, is_ooc)
            .await;
        marked.map(drop)
    }
}

/// Ada has answered, and Bob's turn of auto mode is queued; it expects Ada's answer as the tail.
async fn waiting(backend: TestBackend, policy: InputPolicy) -> EngineTest {
    let app = EngineTest::builder(backend)
        .cast(&["Ada", "Bob"])
        .rules(move |it| {
            it.auto_mode_enabled = true;
            it.auto_mode_delay_ms = DELAY_MS;
            it.auto_mode_max_turns = 1;
            it.during_generation_user_input_policy = policy;
        })
        .open()
        .await;
    app.user.post("Hello.").await;
    app.settle().await;
    app
}

fn refusal(outcome: Result<(), EngineError>) -> CommandError {
    match outcome {
        Err(EngineError::Rejected(refusal)) => refusal,
        other => panic!("expected a rejection, got {other:?}"),
    }
}

on_both! {
    async fn a_message_out_of_character_leaves_the_queued_turn_as_it_is(backend) {
        let app = waiting(backend, InputPolicy::Reject).await;
        let before = app.runtime().await.queued;

        let posted = app.user.post("((Back in five.))").await;
        let queued = app.runtime().await.queued;
        app.clock.advance_ms(DELAY_MS);
        app.settle().await;

        assert!(posted.message.is_ooc && posted.run.is_none());
        assert_eq!(queued, before);
        let statuses: Vec<_> = app.runs().await.iter().map(|it| it.status).collect();
        assert_eq!(statuses, [RunStatus::Succeeded, RunStatus::Succeeded]);
        let row = app.row().await;
        assert_eq!((row.last_user_seq, row.last_assistant_seq, row.last_seq), (Some(1), Some(4), 4));
        app.close().await;
    }

    async fn the_tail_before_messages_out_of_character_is_found_by_its_index(backend) {
        let app = waiting(backend, InputPolicy::Queue).await;
        app.user.post("((One.))").await;
        app.user.post("((Two.))").await;
        let db = ExplainingConnection::new(app.db.heartbeat_connection());
        let row = conversation::Entity::find_by_id(app.conversation).one(app.db.reader()).await;
        let row = row.expect("the database answers").expect("the conversation");

        let tail = timeline::list_tails(&db, [&row]).await.expect("the query failed").pop();

        db.assert_uses_one_of(&["scheduled_messages", "visible_messages_by_role"]);
        assert_eq!(tail.map(|it| it.seq), Some(2));
        app.close().await;
    }

    async fn a_mark_of_the_newest_message_keeps_the_queued_turn_valid(backend) {
        let app = waiting(backend, InputPolicy::Queue).await;
        let posted = app.user.post("((Wait.))").await.message.id;

        app.mark(posted, false).await.expect("the mark is removed");
        let expected = app.runtime().await.queued.and_then(|it| it.debug.expected_last_message_id);
        assert_eq!(expected, Some(posted));
        app.mark(posted, true).await.expect("the mark is set");
        let expected = app.runtime().await.queued.and_then(|it| it.debug.expected_last_message_id);
        assert_eq!(expected, Some(app.messages().await[1].id));
        app.mark(posted, false).await.expect("the mark is removed");
        app.clock.advance_ms(DELAY_MS);
        app.settle().await;

        assert_eq!(app.answers().await.len(), 2);
        app.close().await;
    }

    async fn under_reject_no_mark_of_the_newest_message_changes_while_a_turn_is_queued(backend) {
        let app = waiting(backend, InputPolicy::Reject).await;
        let posted = app.user.post("((Wait.))").await.message.id;
        let earlier = app.messages().await[0].id;

        let refused = refusal(app.mark(posted, false).await);
        app.mark(earlier, true).await.expect("an earlier message decides nothing");

        assert_eq!(refused, CommandError::GenerationLocked);
        app.clock.advance_ms(DELAY_MS);
        app.settle().await;
        app.mark(posted, false).await.expect("the conversation is idle");
        app.close().await;
    }

    async fn a_message_out_of_character_is_not_learned_until_its_mark_is_removed(backend) {
        let app = EngineTest::builder(backend).rules(|it| it.reply_order = ReplyOrder::Manual).open().await;
        let posted = app.user.post_marked(FACT, Some(true), None).await.expect("accepted").message.id;
        app.learn().await;
        assert_eq!(app.memories().await, Vec::<String>::new());

        app.mark(posted, false).await.expect("the mark is removed");
        app.learn().await;
        assert_eq!(app.memories().await, [format!("Eve: {FACT}")]);

        app.mark(posted, true).await.expect("the mark is set");
        assert_eq!(app.memories().await, Vec::<String>::new());
        app.close_without_events().await;
    }

    async fn a_branch_keeps_the_marks(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post("((Testing.))").await;
        app.user.post("Hello.").await;
        app.settle().await;
        let fork = app.messages().await[2].id;

        let branch = app.engine.branch(app.conversation, fork, String::new()).await.unwrap();

        let there = app.user_in_conversation(&app.engine, branch.id);
        let marks = timeline::list_newest(app.db.reader(), branch.id, Viewer::Server, 9).await.unwrap();
        assert_eq!(marks.iter().map(|it| it.seq).collect::<Vec<_>>(), [2, 3]);
        assert!(there.post("((Here too.))").await.message.is_ooc);
        app.close().await;
    }
}

on_sqlite! {
    async fn no_prompt_contains_a_message_out_of_character(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post("((The secret word is plover.))").await;
        assert_eq!(app.upstream.n_requests(), 0);

        app.user.post("Good evening.").await;
        app.settle().await;
        app.user.post_marked("plover again", Some(true), None).await.expect("accepted");
        app.user.post("And a fine one.").await;
        app.settle().await;

        assert_eq!(app.upstream.n_requests(), 2);
        for i in 0..2 {
            let prompt = app.upstream.seen(i).body.to_string();
            assert!(prompt.contains("Good evening.") && !prompt.contains("plover"), "{prompt}");
        }
        app.close().await;
    }

    async fn a_changed_mark_changes_the_next_prompt(backend) {
        let app = EngineTest::builder(backend).open().await;
        let posted = app.user.post("The lantern is green.").await.message.id;
        app.settle().await;

        app.mark(posted, true).await.expect("the mark is set");
        app.user.post("What color?").await;
        app.settle().await;
        app.mark(posted, false).await.expect("the mark is removed");
        app.user.post("And now?").await;
        app.settle().await;

        let is_in = |i| app.upstream.seen(i).body.to_string().contains("lantern");
        assert_eq!([is_in(0), is_in(1), is_in(2)], [true, false, true]);
        app.close().await;
    }

    async fn under_every_policy_it_is_accepted_during_a_reply_that_continues(backend) {
        for policy in [InputPolicy::Reject, InputPolicy::Queue, InputPolicy::Restart] {
            let app = EngineTest::builder(backend)
                .rules(move |it| it.during_generation_user_input_policy = policy)
                .open()
                .await;
            let gate = app.upstream.gate();
            app.upstream.next(ResponseScript::say("One two three."));
            app.user.post("Count.").await;
            gate.step();
            app.events.wait_for_text("One").await;

            let posted = app.user.post("((Nice.))").await;
            gate.open();
            app.settle().await;

            assert!(posted.run.is_none());
            assert_eq!(app.answers().await, ["One two three."], "{policy:?}");
            assert_eq!(app.runs().await.len(), 1);
            app.close().await;
        }
    }

    async fn the_explicit_mark_takes_precedence_over_the_text(backend) {
        let app = EngineTest::builder(backend).rules(|it| it.reply_order = ReplyOrder::Manual).open().await;

        let spoken = app.user.post_marked("((whispers))", Some(false), None).await.expect("accepted");
        let marked = app.user.post_marked("Plain.", Some(true), None).await.expect("accepted");
        let by_text = app.user.post_marked(" ((brb)) \n", None, None).await.expect("accepted");

        let marks = [spoken, marked, by_text].map(|it| it.message.is_ooc);
        assert_eq!(marks, [false, true, true]);
        app.close().await;
    }

    async fn a_client_id_with_another_explicit_mark_is_rejected(backend) {
        let app = EngineTest::builder(backend).rules(|it| it.reply_order = ReplyOrder::Manual).open().await;
        let post = async |is_ooc| app.user.post_marked("Hello.", is_ooc, Some("c-1")).await;
        let first = post(Some(true)).await.expect("accepted");

        let again = post(Some(true)).await.expect("the same post");
        let unsaid = post(None).await.expect("the same text");
        let other = refusal(post(Some(false)).await.map(drop));
        app.mark(first.message.id, false).await.expect("the mark is removed");
        let later = post(Some(true)).await.expect("a repetition of the first post");

        assert!(again.is_repeated && unsaid.is_repeated && later.is_repeated);
        assert_eq!(other, CommandError::ClientIdReused);
        app.close().await;
    }

    async fn a_text_of_a_character_cannot_be_out_of_character(backend) {
        let app = EngineTest::builder(backend).open().await;
        app.user.post("Hello.").await;
        app.settle().await;
        let answer = app.messages().await[1].id;

        assert_eq!(refusal(app.mark(answer, true).await), CommandError::NotOfPerson);
        app.mark(answer, false).await.expect("nothing changes");
        app.close().await;
    }

    async fn a_failed_turn_can_be_retried_after_a_message_out_of_character(backend) {
        let app = EngineTest::builder(backend)
            .rules(|it| it.reply_order = ReplyOrder::Manual)
            .open()
            .await;
        app.user.post("Hello.").await;
        app.upstream.next(ResponseScript::status(400));
        app.engine.force_talk(app.conversation, ForcedTurn::new(None, "Eve", Viewer::Server)).await.expect("queued");
        app.settle().await;

        app.user.post("((It failed.))").await;
        app.engine.retry(app.scope(), true).await.expect("the failed turn is the newest event");
        app.settle().await;

        assert_eq!(app.answers().await, ["Hello."]);
        app.close().await;
    }

    async fn the_last_turn_and_the_newest_message_are_read_past_it(backend) {
        let app = EngineTest::builder(backend)
            .cast(&["Ada", "Bob"])
            .rules(|it| it.replies_per_turn = RepliesPerTurn::Activated)
            .open()
            .await;
        app.user.post("Hello.").await;
        app.settle().await;
        app.user.post("((Once more, please.))").await;

        app.engine.regenerate(app.conversation, None, "Eve".to_owned()).await.expect("regenerated");
        app.settle().await;

        let all = app.messages().await;
        assert_eq!(all.len(), 4, "no branch was created");
        assert_eq!(all[2].active_swipe, 1);
        assert_eq!(app.runtime().await.state(), ConversationState::Idle);
        app.close().await;
    }
}
