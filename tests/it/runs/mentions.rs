//! Tests the stored seed of a round, mentions by id, and what is cut from a reply.

use base::ids::MembershipId;
use tavern::seeded_random::SeededRandom;
use troupe::rounds::{round, slot};
use troupe::runs::scheduling::messages::new_post::NewPost;
use troupe::spaces::membership;
use troupe::spaces::space::{Model as Space, RepliesPerTurn, ReplyOrder};
use troupe::speakers::selection::{Candidate, SelectionInput, SelectionTrigger, SpeakerChoice};
use troupe::speakers::selector;

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::engine_test_builder::EngineTestBuilder;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};

fn with(backend: TestBackend, names: &[&str]) -> EngineTestBuilder {
    EngineTest::builder(backend)
        .cast(names)
        .rules(|it| it.reply_order = ReplyOrder::Natural)
}

impl EngineTest {
    /// The speakers that answer this text with these mentioned memberships.
    async fn mentioned_speakers(&self, text: &str, mentions: &[MembershipId]) -> String {
        let post = NewPost {
            mentions: mentions.to_vec(),
            ..NewPost::new(self.user.membership, text.to_owned())
        };
        let posted = self.user.send(post);
        let run = posted.await.expect("the post was rejected").run;
        self.settle().await;
        let speaker = run.expect("no run was planned").speaker_space_membership_id;
        let members = membership::list_for_space(self.db.reader(), self.space).await;
        let members = members.expect("the query failed");
        let member = members.into_iter().find(|it| Some(it.id) == speaker);
        member.expect("the member is missing").cached_display_name
    }
}

/// The talkativeness rolls for a seed, when all members are equally talkative.
fn reproduce_rolls(members: &[membership::Model], seed: i64) -> Vec<SpeakerChoice> {
    let candidates = members.iter().filter(|it| it.can_be_scheduled());
    let input = SelectionInput {
        candidates: candidates
            .map(|it| Candidate {
                id: it.id,
                is_person: false,
                position: it.position,
                names: vec![it.cached_display_name.clone()],
                talkativeness: 0.5,
                is_schedulable: true,
            })
            .collect(),
        ..SelectionInput::default()
    };
    let mut rng = SeededRandom::from_seed(seed);
    selector::select_round(
        ReplyOrder::Natural,
        SelectionTrigger::Human,
        &input,
        &mut rng,
    )
}

on_sqlite! {
    async fn the_seed_of_a_round_reproduces_its_speakers(backend) {
        let several = |it: &mut Space| it.replies_per_turn = RepliesPerTurn::Activated;
        let app = with(backend, &["Ada", "Bob", "Cid", "Dot"]).rules(several).open().await;
        let gate = HoldPoint::closed();
        app.upstream.next(ResponseScript::say("Well.").held_at(&gate));

        app.user.post("Hello.").await;

        let round = round::find_active(app.db.reader(), app.conversation).await;
        let round = round.expect("the query failed").expect("no round is active");
        let members = membership::list_for_space(app.db.reader(), app.space).await;
        let drawn = reproduce_rolls(&members.expect("the query failed"), round.seed);
        let of = |it: slot::Slot| SpeakerChoice::new(it.space_membership_id.expect("a chosen speaker"), it.chosen_because);
        let stored: Vec<SpeakerChoice> = round.slots.0.into_iter().map(of).collect();
        assert_eq!(stored, drawn);
        gate.open();
        app.settle().await;
        app.close().await;
    }

    async fn a_mention_by_id_comes_before_a_mention_by_name(backend) {
        let app = with(backend, &["Ada", "Bob", "Cid"]).open().await;
        let cid = app.membership("Cid").await.id;

        assert_eq!(app.mentioned_speakers("Bob?", &[cid]).await, "Cid");
        assert_eq!(app.mentioned_speakers("Bob, and @Cid?", &[cid]).await, "Bob");
        app.close().await;
    }

    async fn text_for_another_speaker_is_cut_and_the_own_name_prefix_is_removed(backend) {
        let app = with(backend, &["Ada", "Bob"]).open().await;
        app.upstream.next(ResponseScript::say("Ada: Good evening.\nBob: And me?\nAda: Never."));

        app.user.post("Ada?").await;
        app.settle().await;

        assert_eq!(app.answers().await, ["Good evening."]);
        app.close().await;
    }
}
