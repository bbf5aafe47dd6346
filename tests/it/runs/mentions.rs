//! Tests mentions and auto mode rules, which pure functions decide, through the whole engine.

use base::ids::MembershipId;
use tavern::seeded_random::SeededRandom;
use troupe::rounds::active_round::ActiveRound;
use troupe::rounds::slot;
use troupe::runs::store::run::RunKind;
use troupe::spaces::membership;
use troupe::spaces::space::{Model as Space, RepliesPerTurn, ReplyOrder};
use troupe::speakers::selection::{Candidate, SelectionInput, SelectionTrigger, SpeakerChoice};
use troupe::speakers::selector;

use crate::support::backends::{TestBackend, on_sqlite};
use crate::support::engine_test::EngineTest;
use crate::support::engine_test_builder::EngineTestBuilder;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};

/// A delay that no test waits for.
const DELAY_MS: i64 = 5_000;

fn with(backend: TestBackend, cast: &[&str]) -> EngineTestBuilder {
    EngineTest::builder(backend)
        .cast(cast)
        .rules(|it| it.reply_order = ReplyOrder::Natural)
}

impl EngineTest {
    /// The speakers that answer this text with these mentioned memberships.
    async fn mentioned_speakers(&self, text: &str, mentions: &[MembershipId]) -> String {
        let text = text.to_owned();
        let (engine, seat) = (&self.engine, self.user.membership);
        let posted = engine.post_message(self.conversation, seat, text, None, mentions.to_vec());
        let run = posted.await.expect("the post is taken").run;
        self.settle().await;
        let speaker = run.expect("somebody answers").speaker_space_membership_id;
        let seats = membership::list_for_space(self.db.reader(), self.space).await;
        let seats = seats.expect("the database answers");
        let seat = seats.into_iter().find(|it| it.id == speaker);
        seat.expect("a seat").cached_display_name
    }

    /// The number of replies from auto mode.
    async fn n_auto(&self) -> usize {
        let runs = self.runs().await;
        runs.iter()
            .filter(|it| it.kind == RunKind::AutoMode)
            .count()
    }
}

/// The talkativeness rolls for a seed, when all members are equally talkative.
fn drawn_again(seats: &[membership::Model], seed: i64) -> Vec<SpeakerChoice> {
    let candidates = seats.iter().filter(|it| it.can_be_scheduled());
    let scene = SelectionInput {
        candidates: candidates
            .map(|it| Candidate {
                id: it.id,
                position: it.position,
                names: vec![it.cached_display_name.clone()],
                talkativeness: 0.5,
                is_schedulable: true,
            })
            .collect(),
        ..SelectionInput::default()
    };
    let mut dice = SeededRandom::from_seed(seed);
    selector::select_round(
        ReplyOrder::Natural,
        SelectionTrigger::Human,
        &scene,
        &mut dice,
    )
}

on_sqlite! {
    async fn the_seed_of_a_round_draws_its_speakers_again(backend) {
        let several = |it: &mut Space| it.replies_per_turn = RepliesPerTurn::Activated;
        let room = with(backend, &["Ada", "Bob", "Cid", "Dot"]).rules(several).open().await;
        let gate = HoldPoint::closed();
        room.upstream.next(ResponseScript::say("Well.").held_at(&gate));

        room.user.post("Hello.").await;

        let round = ActiveRound::find(room.db.reader(), room.conversation).await;
        let round = round.expect("the database answers").expect("a round");
        let seats = membership::list_for_space(room.db.reader(), room.space).await;
        let drawn = drawn_again(&seats.expect("the database answers"), round.row.seed);
        let of = |it: slot::Model| SpeakerChoice::new(it.space_membership_id, it.chosen_because);
        let stored: Vec<SpeakerChoice> = round.slots.into_iter().map(of).collect();
        assert_eq!(stored, drawn);
        gate.open();
        room.settle().await;
        room.close().await;
    }

    async fn a_name_in_any_case_or_possessive_selects_its_speaker(backend) {
        let room = with(backend, &["Ada", "Bob", "Zoë"]).open().await;

        assert_eq!(room.mentioned_speakers("is that BOB’s hat?", &[]).await, "Bob");
        assert_eq!(room.mentioned_speakers("zoe\u{308}, or bobby?", &[]).await, "Zoë");
        room.close().await;
    }

    async fn the_longest_name_wins_and_of_namesakes_the_first(backend) {
        let room = with(backend, &["Lancelot", "Sir Lancelot", "Ann Lee", "Ann Poe"]).open().await;

        assert_eq!(room.mentioned_speakers("Sir Lancelot?", &[]).await, "Sir Lancelot");
        assert_eq!(room.mentioned_speakers("Who is Ann?", &[]).await, "Ann Lee");
        assert_eq!(room.mentioned_speakers("Who is Poe?", &[]).await, "Ann Poe");
        room.close().await;
    }

    async fn a_name_within_a_chinese_sentence_is_recognized(backend) {
        let room = with(backend, &["小明", "小红"]).open().await;

        assert_eq!(room.mentioned_speakers("你觉得小红怎么样", &[]).await, "小红");
        room.close().await;
    }

    async fn a_mention_by_id_comes_before_a_mention_by_name(backend) {
        let room = with(backend, &["Ada", "Bob", "Cid"]).open().await;
        let cid = room.membership("Cid").await.id;

        assert_eq!(room.mentioned_speakers("Bob?", &[cid]).await, "Cid");
        assert_eq!(room.mentioned_speakers("Bob, and @Cid?", &[cid]).await, "Bob");
        room.close().await;
    }

    async fn a_pooled_round_has_one_speaker(backend) {
        let rules = |it: &mut Space| {
            it.reply_order = ReplyOrder::Pooled;
            it.replies_per_turn = RepliesPerTurn::Activated;
        };
        let room = with(backend, &["Ada", "Bob", "Cid"]).rules(rules).open().await;

        room.user.post("Anybody?").await;
        room.settle().await;

        assert_eq!(room.answers().await.len(), 1);
        room.close().await;
    }

    async fn alone_one_answers_every_person_but_never_itself(backend) {
        let rules = |it: &mut Space| {
            it.auto_mode_enabled = true;
            it.auto_mode_delay_ms = DELAY_MS;
        };
        let room = with(backend, &["Ada"]).rules(rules).open().await;

        for n in 1..=2 {
            room.user.post("Go on.").await;
            room.settle().await;
            assert_eq!(room.answers().await.len(), n);
        }
        assert_eq!(room.n_auto().await, 0);

        room.change_rules(|it| it.allow_self_responses = true).await;
        room.user.post("And on.").await;
        room.settle().await;
        assert_eq!(room.n_auto().await, 1);
        room.close().await;
    }

    async fn the_slots_of_a_persons_round_cost_auto_mode_nothing(backend) {
        let rules = |it: &mut Space| {
            it.reply_order = ReplyOrder::List;
            it.replies_per_turn = RepliesPerTurn::Activated;
            it.auto_mode_enabled = true;
            it.auto_mode_delay_ms = DELAY_MS;
        };
        let room = with(backend, &["Ada", "Bob", "Cid"]).rules(rules).open().await;

        room.user.post("Hello.").await;
        room.settle().await;

        assert_eq!(room.answers().await.len(), 3);
        // The run that waits for its delay.
        assert_eq!(room.row().await.auto_mode_turns, 1);
        room.close().await;
    }

    async fn what_another_would_say_is_cut_and_the_own_name_goes(backend) {
        let room = with(backend, &["Ada", "Bob"]).open().await;
        room.upstream.next(ResponseScript::say("Ada: Good evening.\nBob: And me?\nAda: Never."));

        room.user.post("Ada?").await;
        room.settle().await;

        assert_eq!(room.answers().await, ["Good evening."]);
        room.close().await;
    }
}
