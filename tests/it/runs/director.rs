//! Tests the reply order `director` with a scripted model: who is chosen, what the model is told, and what
//! follows without a usable answer.

use std::time::Duration;

use base::ids::MembershipId;
use serde_json::{Value, json};
use troupe::runs::scheduling::messages::new_post::{NewPost, RequestedAudience};
use troupe::runs::store::run::RunUsage;
use troupe::spaces::membership::Participation;
use troupe::spaces::space;
use troupe::spaces::space::{RepliesPerTurn, ReplyOrder};

use crate::support::backends::{TestBackend, on_both};
use crate::support::engine_test::EngineTest;
use crate::support::engine_test_builder::EngineTestBuilder;
use crate::support::fake_provider::script::{HoldPoint, ResponseScript};

pub fn builder(
    backend: TestBackend,
    rules: impl FnOnce(&mut space::Model) + Send + 'static,
) -> EngineTestBuilder {
    EngineTest::builder(backend)
        .cast(&["Ada", "Bob", "Cid"])
        .rules(|it| {
            it.reply_order = ReplyOrder::Director;
            rules(it);
        })
}

pub async fn open(backend: TestBackend) -> EngineTest {
    builder(backend, |_| {}).open().await
}

/// The director's answer.
pub fn choice(speakers: &[&str], reason: &str) -> ResponseScript {
    ResponseScript::say(&json!({ "speakers": speakers, "reason": reason }).to_string())
}

/// The names that the director may choose; `None`: the request is not one to the director.
fn offered(body: &Value) -> Option<Vec<String>> {
    let format = &body["response_format"]["json_schema"];
    if format["name"] != "next_speaker" {
        return None;
    }
    let names = &format["schema"]["properties"]["speakers"]["items"]["enum"];
    let names = names.as_array().expect("the names").iter();
    Some(
        names
            .map(|it| it.as_str().expect("a name").to_owned())
            .collect(),
    )
}

impl EngineTest {
    /// Returns the names of the characters that have replied, in order.
    pub async fn repliers(&self) -> Vec<String> {
        let mut names = self.speakers().await;
        names.retain(|it| it != "Eve");
        names
    }

    pub async fn id_of(&self, name: &str) -> MembershipId {
        self.membership(name).await.id
    }

    /// Returns why the speaker of each run was chosen.
    async fn reasons(&self) -> Vec<String> {
        let runs = self.runs().await.into_iter();
        runs.map(|it| it.debug.chosen_because.unwrap_or_default())
            .collect()
    }

    async fn whisper_to(&self, text: &str, names: &[&str]) {
        let mut post = NewPost::new(self.user.membership, text.to_owned());
        let mut audience = Vec::new();
        for name in names {
            audience.push(self.id_of(name).await);
        }
        post.requested.audience = RequestedAudience::Only(audience);
        self.user.send(post).await.expect("the whisper is accepted");
    }

    /// Asserts that the space is charged what its runs have used, and returns their usage.
    pub async fn usage_counted_once(&self) -> Vec<Option<RunUsage>> {
        let usages: Vec<_> = self.runs().await.iter().map(|it| it.usage).collect();
        let all: i64 = usages.iter().copied().flatten().map(RunUsage::total).sum();
        assert_eq!(self.tokens_used().await, all, "{usages:?}");
        usages
    }

    /// Posts a message; returns when the director's model waits to answer it.
    pub async fn post_and_hold(&self, answer: ResponseScript) -> HoldPoint {
        let gate = HoldPoint::closed();
        self.upstream.next(answer.held_at(&gate));
        self.user.post("Who is there?").await;
        self.upstream.wait_for_requests(1).await;
        gate
    }
}

on_both! {
    async fn the_character_that_the_director_names_speaks(backend) {
        let app = open(backend).await;
        app.upstream.next(choice(&["Bob"], "Bob was asked."));

        app.user.post("Who is there?").await;
        app.settle().await;

        assert_eq!(app.repliers().await, ["Bob"]);
        assert_eq!(app.reasons().await, ["director: Bob was asked."]);
        assert_eq!(offered(&app.upstream.body(0)), Some(["Ada", "Bob", "Cid"].map(str::to_owned).to_vec()));
        assert_eq!(offered(&app.upstream.body(1)), None);
        let told = app.upstream.body(0)["messages"][1]["content"].to_string();
        assert!(told.contains("Who is there?"), "{told}");
        app.close().await;
    }

    async fn the_speaker_types_only_after_the_choice(backend) {
        let app = open(backend).await;
        let gate = app.post_and_hold(choice(&["Cid"], "Cid knows.")).await;
        let before = app.events.event_names();
        let running = app.runtime().await.running.expect("a run is running");
        let n_events = app.events.log().len();

        gate.open();
        app.settle().await;

        assert!(!before.iter().any(|it| it == "typing_start"), "{before:?}");
        assert_eq!(running.speaker_space_membership_id, None);
        let after = app.events.event_names_since(n_events);
        assert_eq!(after[..2], ["queue_updated", "typing_start"], "{after:?}");
        let start = app.events.wait_for_event("typing_start").await;
        assert_eq!(start["membership_id"], json!(app.id_of("Cid").await));
        app.close().await;
    }

    async fn the_tokens_of_the_choice_are_part_of_the_runs_usage(backend) {
        let app = open(backend).await;
        app.upstream.next(choice(&["Bob"], "Bob was asked."));

        app.user.post("Who is there?").await;
        app.settle().await;

        // 7 prompt tokens each; the answer of the director has three words, the reply one.
        let usage = RunUsage { prompt_tokens: 14, completion_tokens: 4, estimated: false };
        assert_eq!(app.usage_counted_once().await, [Some(usage)]);
        app.close().await;
    }

    async fn without_a_usable_name_natural_order_chooses(backend) {
        let app = open(backend).await;
        app.upstream.next(choice(&["Zoe", "Eve"], "They were asked."));

        app.user.post("Who is there?").await;
        app.settle().await;

        assert_eq!(app.repliers().await, ["Ada"]);
        assert_eq!(app.reasons().await, ["director failed (no_usable_name): next in rotation"]);
        app.close().await;
    }

    async fn without_an_answer_in_time_natural_order_chooses(backend) {
        let app = builder(backend, |_| {})
            .settings(|it| it.call_limits.total = Duration::from_secs(2))
            .open()
            .await;
        app.upstream.next(ResponseScript::hang_before_headers());

        app.user.post("Who is there?").await;
        app.settle().await;

        assert_eq!(app.repliers().await, ["Ada"]);
        assert_eq!(app.reasons().await, ["director failed (timeout): next in rotation"]);
        app.close().await;
    }

    async fn a_failing_provider_leaves_the_choice_to_natural_order(backend) {
        let app = open(backend).await;
        for _ in 0..2 {
            app.upstream.next(ResponseScript::status(400));
        }

        app.user.post("Who is there?").await;
        app.settle().await;

        assert_eq!(app.repliers().await, ["Ada"]);
        assert_eq!(app.reasons().await, ["director failed (call_failed): next in rotation"]);
        app.close().await;
    }

    async fn a_server_that_rejects_the_schema_is_asked_without_it(backend) {
        let app = open(backend).await;
        app.upstream.next(ResponseScript::status(400));
        app.upstream.next(ResponseScript::say("I would let Cid speak."));

        app.user.post("Who is there?").await;
        app.settle().await;

        assert_eq!(app.repliers().await, ["Cid"]);
        assert_eq!(app.reasons().await, ["director: I would let Cid speak."]);
        assert!(app.upstream.body(1)["response_format"].is_null());
        app.close().await;
    }

    async fn several_chosen_characters_speak_in_their_order(backend) {
        let app = builder(backend, |it| it.replies_per_turn = RepliesPerTurn::Activated).open().await;
        app.upstream.next(choice(&["Cid", "Ada", "cid"], "Both were asked."));

        app.user.post("Who is there?").await;
        app.settle().await;

        assert_eq!(app.repliers().await, ["Cid", "Ada"]);
        assert_eq!(app.reasons().await, ["director: Both were asked."; 2]);
        assert_eq!(app.upstream.n_requests(), 3);
        app.close().await;
    }

    async fn a_whisper_is_answered_from_its_audience_and_others_are_not_told(backend) {
        let app = open(backend).await;
        app.whisper_to("A secret for Bob.", &["Bob"]).await;
        app.settle().await;
        app.user.post("Ada, tell everyone.").await;
        app.settle().await;
        app.user.post("((I'll be right back.))").await;
        let n_before = app.upstream.n_requests();
        app.upstream.next(choice(&["Bob", "Cid"], "Cid was asked."));

        app.whisper_to("A plan for two of you.", &["Ada", "Cid"]).await;
        app.settle().await;

        let body = app.upstream.body(n_before);
        let mut names = offered(&body).expect("the director was asked");
        names.sort();
        assert_eq!(names, ["Ada", "Cid"]);
        let told = body["messages"][1]["content"].to_string();
        for shown in ["tell everyone", "A plan for two of you."] {
            assert!(told.contains(shown), "{shown}: {told}");
        }
        for hidden in ["A secret", "right back"] {
            assert!(!told.contains(hidden), "{hidden}: {told}");
        }
        assert_eq!(app.repliers().await.last().map(String::as_str), Some("Cid"));
        let reply = app.messages().await.pop().expect("a reply");
        assert!(reply.audience.is_some_and(|it| it.members().len() == 3));
        app.close_without_events().await;
    }

    async fn the_director_of_a_public_reply_is_told_no_whisper(backend) {
        let app = open(backend).await;
        app.whisper_to("A secret for Bob.", &["Bob"]).await;
        app.settle().await;
        let n_before = app.upstream.n_requests();
        app.upstream.next(choice(&["Ada"], "Ada was asked."));

        app.user.post("Who is there?").await;
        app.settle().await;

        let body = app.upstream.body(n_before);
        assert!(offered(&body).is_some());
        assert!(!body.to_string().contains("A secret"), "{body}");
        app.close_without_events().await;
    }

    async fn a_mentioned_character_speaks_and_the_director_is_not_asked(backend) {
        let app = open(backend).await;

        app.user.post("Cid?").await;
        app.settle().await;

        assert_eq!(app.repliers().await, ["Cid"]);
        assert_eq!(app.upstream.n_requests(), 1);
        assert_eq!(app.reasons().await, ["mentioned \"Cid\""]);
        app.close().await;
    }

    async fn the_only_character_speaks_and_the_director_is_not_asked(backend) {
        let app = builder(backend, |_| {}).cast(&["Ada"]).open().await;

        app.user.post("Who is there?").await;
        app.settle().await;

        assert_eq!(app.repliers().await, ["Ada"]);
        assert_eq!(app.upstream.n_requests(), 1);
        assert_eq!(app.reasons().await, ["director: the only one who can speak"]);
        app.close().await;
    }

    async fn auto_mode_asks_the_director_for_each_turn(backend) {
        let rules = |it: &mut space::Model| {
            (it.auto_mode_enabled, it.auto_mode_delay_ms, it.auto_mode_max_turns) = (true, 0, 2);
        };
        let app = builder(backend, rules).open().await;
        // It prefers Bob, and else names the last one.
        app.upstream.answer_with(|body| match offered(body) {
            Some(names) if names.iter().any(|it| it == "Bob") => choice(&["Bob"], "Bob again."),
            Some(names) => choice(&[names.last().expect("a name")], "Someone else."),
            None => ResponseScript::say("Hello."),
        });

        app.user.post("Who is there?").await;
        app.settle().await;

        let speakers = app.repliers().await;
        assert_eq!((speakers.len(), speakers[0].as_str(), speakers[2].as_str()), (3, "Bob", "Bob"));
        assert_ne!(speakers[1], "Bob", "a character answered itself");
        app.close().await;
    }

    async fn a_member_muted_during_the_choice_does_not_speak(backend) {
        let app = open(backend).await;
        let gate = app.post_and_hold(choice(&["Bob"], "Bob was asked.")).await;
        app.change_membership("Bob", |it| it.participation = Participation::Muted).await;

        gate.open();
        app.settle().await;

        assert_eq!(app.repliers().await, ["Ada"]);
        assert_eq!(app.reasons().await, ["director failed (no_usable_name): next in rotation"]);
        app.close().await;
    }

    async fn a_reply_is_not_requested_when_the_choice_used_the_last_tokens(backend) {
        let app = builder(backend, |it| it.token_limit = 8).open().await;
        app.upstream.next(choice(&["Bob"], "Bob was asked."));

        app.user.post("Who is there?").await;
        app.settle().await;

        let run = app.only_run().await;
        assert_eq!(run.error.as_ref().map(|it| it.code.as_str()), Some("token_limit_exceeded"));
        assert_eq!(run.speaker_space_membership_id, Some(app.id_of("Bob").await));
        assert_eq!(app.upstream.n_requests(), 1);
        app.usage_counted_once().await;
        app.close().await;
    }

    async fn the_directors_provider_is_asked_and_a_deleted_one_is_replaced_by_the_default(backend) {
        let app = open(backend).await;
        let other = app.another_provider("director").await;
        app.change_rules(|it| it.director_provider_id = Some(other)).await;
        app.upstream.next(choice(&["Bob"], "Bob was asked."));
        app.user.post("Who is there?").await;
        app.settle().await;
        let asked = [0, 1].map(|n| app.upstream.body(n)["model"].clone());
        troupe::providers::provider::delete(&app.db, other).await.unwrap();
        app.upstream.next(choice(&["Cid"], "Cid was asked."));

        app.user.post("And who else?").await;
        app.settle().await;

        assert_eq!(asked, [json!("director"), json!("scripted")]);
        assert_eq!(app.upstream.body(2)["model"], "scripted");
        assert_eq!(app.repliers().await, ["Bob", "Cid"]);
        app.close().await;
    }
}
