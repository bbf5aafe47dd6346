//! Tests of speaker selection for spaces that are requested as models.

use std::collections::HashMap;

use base::clock::Timestamp;
use base::ids::{CharacterId, MembershipId, SpaceId};
use responses_api::request::items::item_view::ItemView;
use serde_json::{Value, json};
use tavern::seeded_random::SeededRandom;

use super::{SpaceRequest, choose, speaker_metadata, speaker_name};
use crate::spaces::membership::Participation;
use crate::spaces::space::{RepliesPerTurn, ReplyOrder};
use crate::spaces::{membership, space};
use crate::speakers::from_memberships;

fn character_membership(id: i64, name: &str) -> membership::Model {
    membership::Model {
        id: MembershipId(id),
        space_id: SpaceId(1),
        kind: membership::MembershipKind::Character,
        user_id: None,
        character_id: Some(CharacterId(10 * id)),
        role: membership::MembershipRole::Member,
        position: id,
        status: membership::MembershipStatus::Active,
        participation: Participation::Active,
        is_away: false,
        cached_display_name: name.to_owned(),
        own_display_name: None,
        avatar_hash: None,
        aliases: json!([]),
        active_persona_id: None,
        translate: crate::spaces::membership::TranslationChoice::OnDemand,
        persona: None,
        talkativeness: Some(1.0),
        copilot_mode: membership::CopilotMode::None,
        copilot_remaining_steps: None,
        copilot_conversation_id: None,
        llm_provider_id: None,
        preset_id: None,
        settings: json!({}),
        settings_version: 0,
        created_at: Timestamp(0),
    }
}

fn space(reply_order: ReplyOrder, replies_per_turn: RepliesPerTurn) -> space::Model {
    space::Model {
        id: SpaceId(1),
        name: "The stage".to_owned(),
        description: String::new(),
        owner_id: None,
        translation_provider_id: None,
        director_provider_id: None,
        model_language: None,
        status: space::SpaceStatus::Active,
        reply_order,
        replies_per_turn,
        card_handling_mode: space::CardHandlingMode::Swap,
        allow_self_responses: false,
        auto_mode_enabled: false,
        auto_mode_delay_ms: 0,
        auto_mode_max_turns: 0,
        during_generation_user_input_policy: space::InputPolicy::Queue,
        user_turn_debounce_ms: 0,
        slow_mode_s: 0,
        humans_take_turns: false,
        human_turn_timeout_s: 0,
        group_regenerate_mode: space::GroupRegenerateMode::SingleMessage,
        settings: json!({}),
        settings_version: 0,
        unattributed_tokens: 0,
        roster_rev: 0,
        scripts_rev: 0,
        memory_version: 0,
        memory_reset_version: 0,
        memory_tokens_used: 0,
        embedding_model_id: None,
        token_limit: 0,
        is_hidden: false,
        created_at: Timestamp(0),
    }
}

fn three_memberships() -> Vec<membership::Model> {
    vec![
        character_membership(2, "Ada"),
        character_membership(3, "Bob"),
        character_membership(4, "Cid"),
    ]
}

fn user(text: &str) -> Value {
    json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] })
}

fn message_by(membership: &membership::Model) -> Value {
    json!({ "type": "message", "role": "assistant", "content": [], "metadata": speaker_metadata(membership, "x") })
}

/// Returns the chosen speakers and the reasons.
fn chosen(
    space: &space::Model,
    memberships: &[membership::Model],
    items: &[Value],
) -> Vec<(i64, String)> {
    let request = SpaceRequest {
        space,
        memberships,
        candidates: from_memberships::candidates(memberships, &HashMap::new()),
        requester_id: MembershipId(1),
    };
    let items: Vec<&Value> = items.iter().collect();
    let chosen = choose(&request, &items, &mut SeededRandom::from_seed(7)).into_iter();
    chosen.map(|it| (it.id.0, it.reason)).collect()
}

fn choose_one(order: ReplyOrder, items: &[Value]) -> (i64, String) {
    let mut chosen = chosen(
        &space(order, RepliesPerTurn::One),
        &three_memberships(),
        items,
    );
    assert_eq!(chosen.len(), 1, "{chosen:?}");
    chosen.remove(0)
}

#[test]
fn the_character_mentioned_in_the_newest_user_item_speaks() {
    let items = [
        user("Ada?"),
        message_by(&character_membership(2, "Ada")),
        user("And Bob?"),
    ];

    let (id, because) = choose_one(ReplyOrder::Natural, &items);

    assert_eq!((id, because.as_str()), (3, "mentioned \"Bob\""));
}

#[test]
fn the_last_speaker_is_read_from_the_chain() {
    let [ada, bob, cid] = [2, 3, 4].map(|id| message_by(&character_membership(id, "x")));

    let next = |last: Value| choose_one(ReplyOrder::List, &[user("Hi."), last, user("And?")]).0;

    assert_eq!([next(ada), next(bob), next(cid)], [3, 4, 2]);
    let other = message_by(&character_membership(99, "x"));
    assert_eq!(next(other), 2, "an unknown membership is ignored");
    let mut by_character = message_by(&character_membership(3, "x"));
    by_character["metadata"]["membership_id"] = Value::Null;
    assert_eq!(
        next(by_character),
        4,
        "the character is recognized without its membership"
    );
}

#[test]
fn in_pooled_order_each_speaks_once_per_user_message() {
    let mut items = vec![user("Hi.")];
    let mut seen = Vec::new();
    for _ in 0..3 {
        let (id, _) = choose_one(ReplyOrder::Pooled, &items);
        items.push(message_by(&character_membership(id, "x")));
        seen.push(id);
    }

    seen.sort_unstable();
    assert_eq!(seen, [2, 3, 4]);
    let (_, because) = choose_one(ReplyOrder::Pooled, &items);
    assert_eq!(because, "drawn at random", "as for a Generate request");
}

#[test]
fn in_manual_order_one_speaker_is_drawn() {
    assert_eq!(
        choose_one(ReplyOrder::Manual, &[user("Hi.")]).1,
        "drawn at random"
    );
}

#[test]
fn all_activated_characters_speak_if_the_space_allows_it() {
    let space = space(ReplyOrder::List, RepliesPerTurn::Activated);

    let chosen = chosen(&space, &three_memberships(), &[user("Hi.")]);

    let ids: Vec<i64> = chosen.iter().map(|it| it.0).collect();
    assert_eq!(ids, [2, 3, 4]);
}

#[test]
fn without_candidates_there_is_no_speaker() {
    let mut muted = character_membership(2, "Ada");
    muted.participation = Participation::Muted;

    let space = space(ReplyOrder::Natural, RepliesPerTurn::One);

    assert_eq!(chosen(&space, &[muted], &[user("Ada?")]), []);
}

#[test]
fn the_caller_of_a_tool_continues_after_its_output() {
    let mut call = json!({ "type": "function_call", "call_id": "a" });
    call["metadata"] = speaker_metadata(&character_membership(3, "Bob"), "mentioned \"Bob\"");
    let output = json!({ "type": "function_call_output", "call_id": "a" });
    let items = [user("Bob?"), call, output];

    assert_eq!(
        choose_one(ReplyOrder::List, &items),
        (3, "mentioned \"Bob\"".to_owned())
    );
    let and_then = [
        &items[..],
        &[message_by(&character_membership(3, "Bob")), user("Next.")],
    ]
    .concat();
    assert_eq!(choose_one(ReplyOrder::List, &and_then).0, 4);
}

#[test]
fn a_long_speaker_name_is_truncated() {
    let name_of = |item: Value| speaker_name(&ItemView::of(&item));
    let item = |name: Value| json!({ "metadata": { "speaker": name } });

    assert_eq!(name_of(item(json!(" Ada "))).as_deref(), Some("Ada"));
    assert_eq!(
        name_of(item(json!("x".repeat(5_000)))).map(|it| it.len()),
        Some(100)
    );
    assert_eq!(name_of(item(json!(" "))), None);
    assert_eq!(name_of(json!({ "metadata": "Ada" })), None);
    assert_eq!(name_of(json!({})), None);
}
