//! Tests the choice of the speaker with one reply per turn, as far as it depends on stored rows: the
//! newest speakers, muted members, forced turns and greetings.

use std::collections::HashSet;

use base::ids::MembershipId;
use troupe::conversations::audience::viewer::Viewer;
use troupe::runs::error::EngineError;
use troupe::runs::scheduling::command::ForcedTurn;
use troupe::runs::store::run_view::RunView;
use troupe::spaces::membership::Participation;
use troupe::spaces::space::ReplyOrder;

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::engine_test::EngineTest;

async fn open_app(backend: TestBackend, order: ReplyOrder) -> EngineTest {
    EngineTest::builder(backend)
        .cast(&["Ada", "Bob", "Cid"])
        .rules(move |it| it.reply_order = order)
        .open()
        .await
}

impl EngineTest {
    /// The speaker that answers this text, if any.
    async fn next_speaker(&self, text: &str) -> Option<String> {
        let posted = self.user.post(text).await;
        self.settle().await;
        match posted.run {
            Some(run) => Some(self.name_of(run.speaker_space_membership_id).await),
            None => None,
        }
    }

    /// The speaker that Generate selects, and the run with the reason.
    async fn forced_speaker(&self) -> (String, RunView) {
        let run = self.force_turn(None).await.expect("no member can speak");
        self.settle().await;
        (self.name_of(run.speaker_space_membership_id).await, run)
    }

    async fn force_turn(&self, speaker: Option<MembershipId>) -> Result<RunView, EngineError> {
        let by = "Eve".to_owned();
        self.engine
            .force_talk(
                self.conversation,
                ForcedTurn::new(speaker, by, Viewer::Server),
            )
            .await
    }

    async fn name_of(&self, id: Option<MembershipId>) -> String {
        for name in ["Ada", "Bob", "Cid"] {
            if Some(self.membership(name).await.id) == id {
                return name.to_owned();
            }
        }
        panic!("unknown speaker: {id:?}")
    }
}

fn name(it: &str) -> Option<String> {
    Some(it.to_owned())
}

on_sqlite! {
    async fn natural_order_selects_the_first_mentioned_else_the_next_in_rotation(backend) {
        let app = open_app(backend, ReplyOrder::Natural).await;

        assert_eq!(app.next_speaker("Hello.").await, name("Ada"));
        assert_eq!(app.next_speaker("Go on.").await, name("Bob"));
        assert_eq!(app.next_speaker("Bob, or Ada?").await, name("Bob"));
        assert_eq!(app.next_speaker("Go on.").await, name("Cid"));
        assert_eq!(app.next_speaker("Go on.").await, name("Ada"));
        app.close().await;
    }

    async fn a_muted_or_removed_character_is_not_selected(backend) {
        let app = open_app(backend, ReplyOrder::Natural).await;
        app.change_membership("Ada", |it| it.participation = Participation::Muted).await;

        assert_eq!(app.next_speaker("Ada?").await, name("Bob"));
        app.close().await;
    }

    async fn generate_empties_the_pool_before_a_speaker_repeats(backend) {
        let app = open_app(backend, ReplyOrder::Pooled).await;
        let mut spoken: HashSet<String> = app.next_speaker("Everybody!").await.into_iter().collect();

        for _ in 0..2 {
            spoken.insert(app.forced_speaker().await.0);
        }
        let (again, _) = app.forced_speaker().await;

        assert_eq!(spoken.len(), 3);
        assert!(spoken.contains(&again), "the empty pool was not refilled");
        app.close().await;
    }

    async fn a_forced_speaker_speaks_and_the_slot_names_the_requester(backend) {
        let app = open_app(backend, ReplyOrder::List).await;
        let cid = app.membership("Cid").await.id;
        app.change_membership("Cid", |it| it.participation = Participation::Muted).await;

        let run = app.force_turn(Some(cid)).await.unwrap();
        app.settle().await;

        assert_eq!(run.speaker_space_membership_id, Some(cid));
        assert_eq!(run.chosen_because.as_deref(), Some("forced by Eve"));
        assert_eq!(app.answers().await.len(), 1);
        app.close().await;
    }

    async fn a_greeting_counts_as_speech(backend) {
        let app = open_app(backend, ReplyOrder::List).await;
        app.set_greeting("Ada", "Welcome.").await;
        let ada = app.membership("Ada").await.id;
        app.engine.insert_greetings(ada).await.unwrap();

        assert_eq!(app.answers().await, ["Welcome."]);
        assert_eq!(app.next_speaker("Thank you.").await, name("Bob"));
        app.close().await;
    }
}
