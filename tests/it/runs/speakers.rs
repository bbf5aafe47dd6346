//! Tests the choice of the speaker with one reply per turn: each row of the table, through the
//! whole engine.

use std::collections::HashSet;

use base::ids::MembershipId;
use troupe::runs::error::EngineError;
use troupe::runs::scheduling::command::CommandError;
use troupe::runs::store::run;
use troupe::spaces::membership::Participation;
use troupe::spaces::space::ReplyOrder;

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::engine_test::EngineTest;

async fn room(backend: TestBackend, order: ReplyOrder) -> EngineTest {
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
    async fn forced_speaker(&self) -> (String, run::RunView) {
        let run = self.force_turn(None).await.expect("somebody can speak");
        self.settle().await;
        (self.name_of(run.speaker_space_membership_id).await, run)
    }

    async fn force_turn(&self, speaker: Option<MembershipId>) -> Result<run::RunView, EngineError> {
        let by = "Eve".to_owned();
        self.engine.force_talk(self.conversation, speaker, by).await
    }

    async fn name_of(&self, id: MembershipId) -> String {
        for name in ["Ada", "Bob", "Cid"] {
            if self.membership(name).await.id == id {
                return name.to_owned();
            }
        }
        panic!("a stranger speaks: {id}")
    }
}

fn name(it: &str) -> Option<String> {
    Some(it.to_owned())
}

on_sqlite! {
    async fn manual_order_selects_no_speaker(backend) {
        let room = room(backend, ReplyOrder::Manual).await;

        assert_eq!(room.next_speaker("Ada, Bob?").await, None);
        room.close().await;
    }

    async fn natural_order_selects_the_first_mentioned_else_the_next_in_rotation(backend) {
        let room = room(backend, ReplyOrder::Natural).await;

        assert_eq!(room.next_speaker("Hello.").await, name("Ada"));
        assert_eq!(room.next_speaker("Go on.").await, name("Bob"));
        assert_eq!(room.next_speaker("Bob, or Ada?").await, name("Bob"));
        assert_eq!(room.next_speaker("Go on.").await, name("Cid"));
        assert_eq!(room.next_speaker("Go on.").await, name("Ada"));
        room.close().await;
    }

    async fn list_order_goes_by_position_despite_mentions(backend) {
        let room = room(backend, ReplyOrder::List).await;

        for expected in ["Ada", "Bob", "Cid", "Ada"] {
            assert_eq!(room.next_speaker("Cid?").await, name(expected));
        }
        room.close().await;
    }

    async fn pooled_order_draws_any_speaker_after_each_message(backend) {
        let room = room(backend, ReplyOrder::Pooled).await;
        let mut drawn = HashSet::new();

        // The chance that one of three is never drawn in 40 draws is one in three million.
        for _ in 0..40 {
            drawn.extend(room.next_speaker("Anybody?").await);
        }

        assert_eq!(drawn.len(), 3);
        room.close().await;
    }

    async fn a_muted_or_removed_character_is_not_selected(backend) {
        let room = room(backend, ReplyOrder::Natural).await;
        room.change_membership("Ada", |it| it.participation = Participation::Muted).await;

        assert_eq!(room.next_speaker("Ada?").await, name("Bob"));
        room.close().await;
    }

    async fn generate_selects_one_other_than_the_last_speaker(backend) {
        for order in [ReplyOrder::Manual, ReplyOrder::Natural, ReplyOrder::List] {
            let room = room(backend, order).await;
            let mut last = String::new();

            for _ in 0..4 {
                let (woken, run) = room.forced_speaker().await;
                assert_ne!(woken, last, "{order:?}");
                assert_eq!((run.kind, run.reason), (run::RunKind::ForceTalk, run::RunReason::Generate));
                last = woken;
            }
            room.close().await;
        }
    }

    async fn generate_empties_the_pool_before_a_speaker_repeats(backend) {
        let room = room(backend, ReplyOrder::Pooled).await;
        let mut spoken: HashSet<String> = room.next_speaker("Everybody!").await.into_iter().collect();

        for _ in 0..2 {
            spoken.insert(room.forced_speaker().await.0);
        }
        let (again, _) = room.forced_speaker().await;

        assert_eq!(spoken.len(), 3);
        assert!(spoken.contains(&again), "an empty pool wakes somebody all the same");
        room.close().await;
    }

    async fn generate_selects_the_last_speaker_when_no_other_can(backend) {
        let room = room(backend, ReplyOrder::List).await;
        room.next_speaker("Hello.").await;
        for other in ["Bob", "Cid"] {
            room.change_membership(other, |it| it.participation = Participation::Muted).await;
        }

        let (woken, _) = room.forced_speaker().await;
        room.change_membership("Ada", |it| it.participation = Participation::Muted).await;
        let nobody = room.force_turn(None).await;

        assert_eq!(woken, "Ada");
        assert!(matches!(nobody, Err(EngineError::Rejected(CommandError::NoSpeaker))));
        room.close().await;
    }

    async fn a_forced_speaker_speaks_and_the_slot_names_the_requester(backend) {
        let room = room(backend, ReplyOrder::List).await;
        let cid = room.membership("Cid").await.id;
        room.change_membership("Cid", |it| it.participation = Participation::Muted).await;

        let run = room.force_turn(Some(cid)).await.unwrap();
        room.settle().await;

        assert_eq!(run.speaker_space_membership_id, cid);
        assert_eq!(run.chosen_because.as_deref(), Some("forced by Eve"));
        assert_eq!(room.answers().await.len(), 1);
        room.close().await;
    }

    async fn a_greeting_counts_as_speech(backend) {
        let room = room(backend, ReplyOrder::List).await;
        room.set_greeting("Ada", "Welcome.").await;
        let ada = room.membership("Ada").await.id;
        room.engine.insert_greetings(ada).await.unwrap();

        assert_eq!(room.answers().await, ["Welcome."]);
        assert_eq!(room.next_speaker("Thank you.").await, name("Bob"));
        room.close().await;
    }
}
