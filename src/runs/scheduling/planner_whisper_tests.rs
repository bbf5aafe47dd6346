//! Tests of whispers: who replies to one, and who sees its round, its runs and their texts.

use base::ids::{MembershipId, MessageId};

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::audience::viewer::Viewer;
use crate::runs::scheduling::command::{
    Command, CommandError, ForcedTurn, SlotsEdit, VersionRequest,
};
use crate::runs::scheduling::messages::new_post::{NewPost, RequestedAudience};
use crate::runs::scheduling::planner::fixture::{
    ADA, BOB, EVE, PlannerFixture, failure, force, queued, running, success,
};
use crate::runs::store::run;
use crate::runs::store::run::{RunCancelReason, RunKind};
use crate::spaces::membership::CopilotMode;
use crate::spaces::permissions::SkipRight;
use crate::spaces::space::{InputPolicy, RepliesPerTurn, ReplyOrder};

const ZOE: MembershipId = MembershipId(77);

fn whisper(text: &str, to: &[MembershipId]) -> Command {
    let mut post = NewPost::new(EVE, text.to_owned());
    post.requested.audience = RequestedAudience::Only(to.to_vec());
    Command::MessagePosted(Box::new(post))
}

fn audience(members: &[MembershipId]) -> Option<Audience> {
    Audience::new(members.iter().copied())
}

fn idle() -> PlannerFixture {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob"]);
    fixture.state.space.replies_per_turn = RepliesPerTurn::Activated;
    fixture
}

/// Eve has whispered to Bob, and his reply is running.
fn whispered() -> PlannerFixture {
    let mut fixture = idle();
    fixture.run_command(&whisper("Psst.", &[BOB])).unwrap();
    fixture.claim_due();
    fixture
}

/// Bob's whispered reply is message 2.
fn replied() -> PlannerFixture {
    let mut fixture = whispered();
    fixture.end_run(success("What?"));
    fixture
}

impl PlannerFixture {
    fn queued_run(&self) -> &run::Model {
        self.state.queued.as_ref().expect("a run is queued")
    }
}

#[test]
fn only_characters_of_the_audience_reply_and_their_texts_have_it() {
    let mut fixture = idle();

    fixture.run_command(&whisper("Psst.", &[BOB])).unwrap();

    let round = fixture.state.round.clone().expect("a round");
    let speakers: Vec<_> = round
        .slots
        .0
        .iter()
        .map(|it| it.space_membership_id)
        .collect();
    assert_eq!(speakers, [Some(BOB)]);
    assert_eq!(round.audience, audience(&[EVE, BOB]));
    assert_eq!(fixture.queued_run().audience, round.audience);
    fixture.claim_due();
    fixture.end_run(success("What?"));
    let texts = fixture.messages.iter().map(|it| it.audience.clone());
    assert!(texts.eq([round.audience.clone(), round.audience]));
}

#[test]
fn an_audience_must_name_active_members() {
    let refused = |members: &[MembershipId]| idle().run_command(&whisper("Psst.", members));

    for members in [&[][..], &[ZOE], &[BOB, ZOE]] {
        assert_eq!(refused(members), Err(CommandError::UnknownAudience));
    }
}

#[test]
fn a_whisper_to_people_changes_nothing_else_under_any_policy() {
    for policy in [
        InputPolicy::Reject,
        InputPolicy::Queue,
        InputPolicy::Restart,
    ] {
        let mut fixture = running();
        fixture.state.space.during_generation_user_input_policy = policy;
        let before = fixture.state.clone();

        let plan = fixture.run_command(&whisper("To myself.", &[EVE])).unwrap();

        assert_eq!(plan.len(), 1);
        let state = &fixture.state;
        assert_eq!(
            (&state.round, &state.queued, &state.running, &state.tail),
            (&before.round, &before.queued, &before.running, &before.tail)
        );
    }
}

#[test]
fn a_reply_to_a_whisper_inherits_its_audience_unless_a_wider_one_is_requested() {
    let reply = |requested| {
        let mut fixture = replied();
        let mut post = NewPost::new(EVE, "Well.".to_owned());
        post.reply_to = Some(MessageId(2));
        post.requested.audience = requested;
        fixture
            .run_command(&Command::MessagePosted(Box::new(post)))
            .unwrap();
        fixture.messages.last().unwrap().audience.clone()
    };

    assert_eq!(reply(RequestedAudience::Inherited), audience(&[EVE, BOB]));
    assert_eq!(reply(RequestedAudience::Everyone), None);
    assert_eq!(
        reply(RequestedAudience::Only(vec![ADA])),
        audience(&[EVE, ADA])
    );
}

#[test]
fn a_message_that_the_author_does_not_see_cannot_be_answered() {
    let mut fixture = replied();
    fixture.messages[1].audience = audience(&[ADA]);
    let mut post = NewPost::new(EVE, "Well.".to_owned());
    post.reply_to = Some(MessageId(2));

    let refused = fixture.run_command(&Command::MessagePosted(Box::new(post)));

    assert_eq!(refused, Err(CommandError::UnknownReplyTarget));
}

#[test]
fn a_generated_reply_has_the_audience_of_the_newest_message_if_person_and_speaker_see_it() {
    let generate = |speaker, viewer, requested| {
        let mut fixture = replied();
        let turn = ForcedTurn {
            audience: requested,
            ..ForcedTurn::new(speaker, "Eve", viewer)
        };
        let planned = fixture.run_command(&Command::ForceTalk(turn));
        planned.map(|_| fixture.queued_run().clone())
    };
    let (eve, zoe) = (Viewer::Member(EVE), Viewer::Member(ZOE));
    let inherited = || RequestedAudience::Inherited;

    let private = generate(None, eve, inherited()).unwrap();
    assert_eq!(private.audience, audience(&[EVE, BOB]));
    assert_eq!(private.speaker_space_membership_id, Some(BOB));
    assert_eq!(
        generate(Some(ADA), eve, inherited()).unwrap().audience,
        None
    );
    assert_eq!(
        generate(Some(BOB), zoe, inherited()).unwrap().audience,
        None
    );
    let public = generate(Some(BOB), eve, RequestedAudience::Everyone);
    assert_eq!(public.unwrap().audience, None);
    let of_ada = generate(Some(ADA), eve, RequestedAudience::Only(vec![ADA]));
    assert_eq!(of_ada.unwrap().audience, audience(&[EVE, ADA]));
    let of_bob = generate(Some(BOB), eve, RequestedAudience::Only(vec![ADA]));
    assert_eq!(of_bob, Err(CommandError::NoSpeaker));
}

#[test]
fn auto_mode_does_not_follow_a_whispered_reply() {
    let mut fixture = whispered();
    fixture.state.space.auto_mode_enabled = true;

    fixture.end_run(success("What?"));

    assert!(fixture.state.queued.is_none() && fixture.state.round.is_none());
}

#[test]
fn a_recovered_run_keeps_its_audience() {
    let mut fixture = replied();
    fixture.state.space.reply_order = ReplyOrder::Manual;
    let turn = ForcedTurn::new(Some(BOB), "Eve", Viewer::Member(EVE));
    fixture.run_command(&Command::ForceTalk(turn)).unwrap();
    fixture.claim_due();
    let held = fixture.state.running.clone().unwrap();

    fixture
        .run_command(&Command::LeaseExpired {
            run: held.id,
            lease: held.lease,
            silent_for_ms: 30_000,
        })
        .unwrap();

    assert_eq!(fixture.queued_run().audience, audience(&[EVE, BOB]));
}

#[test]
fn a_forced_turn_for_others_ends_with_the_whisper_that_arrives() {
    let mut fixture = queued();
    fixture.run_command(&force(BOB)).unwrap();
    let forced = fixture.queued_run().id;

    fixture.run_command(&whisper("Psst.", &[BOB])).unwrap();

    let ended = fixture.ended.last().expect("the forced turn ended");
    assert_eq!(ended.id, forced);
    assert_eq!(
        ended.canceled_because,
        Some(RunCancelReason::SupersededByMessage)
    );
    let next = fixture.queued_run();
    assert_eq!(
        (next.kind, &next.audience),
        (RunKind::UserTurn, &audience(&[EVE, BOB]))
    );
}

#[test]
fn people_outside_the_audience_neither_skip_nor_retry_nor_edit_its_round() {
    let outside = Viewer::Member(ZOE);
    let mut fixture = whispered();
    let round = fixture.state.round.as_ref().unwrap().id;
    let skipped = fixture.run_command(&Command::Skip {
        viewer: outside,
        right: SkipRight::Everyone,
    });
    let edit = |slots: &[MembershipId], viewer| {
        Command::EditQueue(SlotsEdit {
            round,
            slots: slots.iter().copied().map(Some).collect(),
            by: "Zoe".to_owned(),
            viewer,
        })
    };
    let edited = fixture.run_command(&edit(&[BOB], outside));
    let widened = fixture.run_command(&edit(&[ADA], Viewer::Member(EVE)));
    fixture.end_run(failure());
    let retry = |viewer| Command::Retry {
        may_edit: true,
        viewer,
    };
    let retried = fixture.run_command(&retry(outside));

    assert_eq!(skipped, Err(CommandError::Forbidden));
    assert_eq!(edited, Err(CommandError::StaleRound));
    assert_eq!(widened, Err(CommandError::NotSchedulable));
    assert_eq!(retried, Err(CommandError::NothingToRetry));
    fixture.run_command(&retry(Viewer::Member(EVE))).unwrap();
    assert_eq!(fixture.queued_run().audience, audience(&[EVE, BOB]));
}

#[test]
fn a_whisper_of_others_is_no_newer_message() {
    let mut fixture = idle();
    fixture.state.space.replies_per_turn = RepliesPerTurn::One;
    fixture.post_as_eve("Hi.").unwrap();
    fixture.claim_due();
    fixture.end_run(success("Hello."));
    fixture.state.space.reply_order = ReplyOrder::Manual;
    fixture.run_command(&whisper("Psst.", &[BOB])).unwrap();
    let of_reply = |viewer| VersionRequest {
        instruction: None,
        message: None,
        by: "Zoe".to_owned(),
        viewer,
    };

    let mut regenerated = fixture.clone();
    let again = Command::Regenerate(of_reply(Viewer::Member(ZOE)));
    regenerated.run_command(&again).unwrap();
    let mut continued = fixture.clone();
    let more = Command::Continue(of_reply(Viewer::Member(ZOE)));
    continued.run_command(&more).unwrap();

    for mut fixture in [regenerated, continued] {
        assert_eq!(
            fixture.queued_run().debug.target_message_id,
            Some(MessageId(2))
        );
        assert_eq!(fixture.queued_run().audience, None);
        fixture.claim_due();
        fixture.end_run(success("Hello again."));
        assert_eq!(fixture.messages[1].content, "Hello again.");
    }
}

#[test]
fn a_version_of_a_whispered_reply_has_its_audience_and_is_nobody_elses_to_request() {
    let mut fixture = replied();
    let again = |viewer, message| {
        Command::Regenerate(VersionRequest {
            instruction: None,
            message,
            by: "Eve".to_owned(),
            viewer,
        })
    };
    let outside = fixture.run_command(&again(Viewer::Member(ZOE), Some(MessageId(2))));
    let nothing = fixture.run_command(&again(Viewer::Member(ZOE), None));
    fixture
        .run_command(&again(Viewer::Member(EVE), None))
        .unwrap();

    assert_eq!(outside, Err(CommandError::NotFound));
    assert_eq!(nothing, Err(CommandError::NothingToRegenerate));
    assert_eq!(fixture.queued_run().audience, audience(&[EVE, BOB]));
}

/// Eve has spoken of Ada, then has whispered of Bob to him, and no one has replied.
fn whispered_of_bob() -> PlannerFixture {
    let mut fixture = idle();
    fixture.state.space.replies_per_turn = RepliesPerTurn::One;
    fixture.state.space.reply_order = ReplyOrder::Manual;
    fixture.post_as_eve("Where is Ada?").unwrap();
    let to_bob = whisper("Where is Bob?", &[BOB]);
    fixture.run_command(&to_bob).unwrap();
    fixture.state.space.reply_order = ReplyOrder::Natural;
    fixture
}

#[test]
fn a_generated_reply_reads_and_names_no_whisper_that_its_readers_do_not_see() {
    let generate = |viewer, requested| {
        let mut fixture = whispered_of_bob();
        let turn = ForcedTurn {
            audience: requested,
            ..ForcedTurn::new(None, "Zoe", viewer)
        };
        fixture.run_command(&Command::ForceTalk(turn)).unwrap();
        let run = fixture.queued_run();
        let trigger = run.debug.trigger_message_id;
        (run.speaker_space_membership_id.expect("a speaker"), trigger)
    };
    let (public, private) = (Some(MessageId(1)), Some(MessageId(2)));

    for viewer in [Viewer::Member(ZOE), Viewer::Outsider] {
        let chosen = generate(viewer, RequestedAudience::Inherited);
        assert_eq!(chosen, (ADA, public), "{viewer:?}");
    }
    let eve = Viewer::Member(EVE);
    assert_eq!(generate(eve, RequestedAudience::Everyone), (ADA, public));
    let to_ada = RequestedAudience::Only(vec![ADA]);
    assert_eq!(generate(eve, to_ada), (ADA, public));
    assert_eq!(generate(eve, RequestedAudience::Inherited), (BOB, private));
}

#[test]
fn a_copilot_answers_no_whisper() {
    let mut fixture = whispered_of_bob();
    let conversation = fixture.state.conversation.id;
    let eve = fixture.member_mut(EVE);
    eve.copilot_mode = CopilotMode::Full;
    (eve.copilot_remaining_steps, eve.copilot_conversation_id) = (Some(2), Some(conversation));

    for command in [Command::CopilotStarted { membership: EVE }, Command::Resume] {
        let mut fixture = fixture.clone();
        fixture.run_command(&command).unwrap();

        let run = fixture.queued_run();
        assert_eq!((run.kind, &run.audience), (RunKind::UserTurn, &None));
        assert_eq!(run.debug.trigger_message_id, Some(MessageId(1)));
    }
}

#[test]
fn an_ended_run_names_no_whisper_that_its_readers_do_not_see() {
    let superseding = |mut fixture: PlannerFixture, post: &Command| {
        fixture.state.space.during_generation_user_input_policy = InputPolicy::Restart;
        let run = fixture.running().0;
        fixture.run_command(post).unwrap();
        let ended = fixture.ended.iter().find(|it| it.id == run);
        let ended = ended.expect("the run ended");
        assert_eq!(
            ended.canceled_because,
            Some(RunCancelReason::SupersededByMessage)
        );
        ended.superseded_by_message_id
    };
    let (to_bob, to_both) = (whisper("Psst.", &[BOB]), whisper("Psst.", &[ADA, BOB]));

    assert_eq!(superseding(running(), &to_bob), None);
    let public = Command::MessagePosted(Box::new(NewPost::new(EVE, "Aloud.".to_owned())));
    assert!(superseding(running(), &public).is_some());
    for post in [to_bob, to_both, public] {
        assert!(superseding(whispered(), &post).is_some(), "{post:?}");
    }
    let to_ada = whisper("Psst.", &[ADA]);
    assert_eq!(superseding(whispered(), &to_ada), None);
}
