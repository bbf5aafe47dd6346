//! Tests slow mode: a member posts once in an interval, in all conversations of the space together.

use troupe::runs::error::EngineError;
use troupe::runs::scheduling::command::CommandError;
use troupe::runs::scheduling::messages::new_post::NewPost;
use troupe::spaces::membership::MembershipRole;
use troupe::spaces::space::ReplyOrder;

use crate::support::backends::{TestBackend, on_both, on_sqlite};
use crate::support::engine_test::{EngineTest, TestUser};

const SECONDS: i64 = 30;

/// A space in slow mode in which Eve is a member.
async fn slow_space(backend: TestBackend) -> EngineTest {
    let app = EngineTest::builder(backend)
        .rules(|it| {
            it.reply_order = ReplyOrder::Manual;
            it.slow_mode_s = SECONDS;
        })
        .with_settable_clock()
        .open()
        .await;
    app.change_membership("Eve", |it| it.role = MembershipRole::Member)
        .await;
    app
}

/// Returns the remaining time if the post is too early.
async fn remaining_ms(user: &TestUser, text: &str) -> Option<i64> {
    match user.try_post(text).await {
        Ok(_) => None,
        Err(EngineError::Rejected(CommandError::SlowMode { remaining_ms })) => Some(remaining_ms),
        Err(other) => panic!("{other}"),
    }
}

on_both! {
    async fn a_member_posts_once_in_the_interval_in_all_conversations_together(backend) {
        let app = slow_space(backend).await;
        let other = app.another_conversation().await;
        let elsewhere = app.user_in_conversation(&app.engine, other);

        assert_eq!(remaining_ms(&app.user, "One.").await, None);
        app.clock.advance_ms(1_000);
        assert_eq!(remaining_ms(&app.user, "Two.").await, Some(SECONDS * 1_000 - 1_000));
        assert!(remaining_ms(&elsewhere, "((Three.))").await.is_some());
        app.clock.advance_ms(SECONDS * 1_000 - 1_000);
        assert_eq!(remaining_ms(&elsewhere, "Four.").await, None);
        assert!(remaining_ms(&app.user, "Five.").await.is_some());

        let texts: Vec<String> = app.messages().await.into_iter().map(|it| it.content).collect();
        assert_eq!(texts, ["One."]);
        app.close_without_events().await;
    }

    async fn of_two_posts_at_once_in_two_conversations_one_is_stored(backend) {
        let app = slow_space(backend).await;
        let other = app.another_conversation().await;
        let node = app.another_node();
        let elsewhere = app.user_in_conversation(&node, other);

        let both = tokio::join!(remaining_ms(&app.user, "Here."), remaining_ms(&elsewhere, "There."));

        let n_refused = [both.0, both.1].iter().flatten().count();
        assert_eq!(n_refused, 1, "{both:?}");
        app.stop(&node).await;
        app.close_without_events().await;
    }

    async fn a_post_in_slow_mode_is_no_change_of_the_roster(backend) {
        let app = slow_space(backend).await;
        let mut facts = app.facts().await;
        let rev = "SELECT CAST(roster_rev AS TEXT) FROM spaces";
        let before = facts.number(rev).await;

        app.user.post("One.").await;

        assert_eq!(facts.number(rev).await, before);
        app.close().await;
    }
}

on_sqlite! {
    async fn owners_and_moderators_are_exempt(backend) {
        let app = slow_space(backend).await;
        for role in [MembershipRole::Owner, MembershipRole::Moderator] {
            app.change_membership("Eve", |it| it.role = role).await;

            assert_eq!(remaining_ms(&app.user, "One.").await, None);
            assert_eq!(remaining_ms(&app.user, "Two.").await, None);
        }
        app.close().await;
    }

    async fn a_repeated_post_is_answered_as_always(backend) {
        let app = slow_space(backend).await;
        let first = app.user.post_with_client_id("One.", Some("c-1")).await.expect("accepted");

        let again = app.user.post_with_client_id("One.", Some("c-1")).await.expect("the same post");

        assert!(again.is_repeated);
        assert_eq!(again.message.id, first.message.id);
        app.close().await;
    }

    async fn a_post_that_is_refused_for_another_reason_does_not_count(backend) {
        let app = slow_space(backend).await;
        let unknown = [base::ids::MembershipId(9_999)];
        let post = |mentions: &[_]| {
            let post = NewPost {
                mentions: mentions.to_vec(),
                ..NewPost::new(app.user.membership, "One.".to_owned())
            };
            app.user.send(post)
        };
        assert!(post(&unknown).await.is_err());

        assert!(post(&[]).await.is_ok());
        app.close().await;
    }
}
