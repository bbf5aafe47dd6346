//! The rows of the planner's test fixture: members, and an empty conversation in its space.

use std::collections::{HashMap, HashSet};

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, SpaceId};
use serde_json::json;

use crate::conversations::conversation;
use crate::runs::scheduling::state::command_facts::CommandFacts;
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::spaces::{membership, space};

/// Returns an active person.
pub fn human_member(id: MembershipId, name: &str) -> membership::Model {
    membership::Model {
        kind: membership::MembershipKind::Human,
        ..character_member(id.0, name)
    }
}

/// Returns an active character.
pub fn character_member(id: i64, name: &str) -> membership::Model {
    membership::Model {
        id: MembershipId(id),
        space_id: SpaceId(1),
        kind: membership::MembershipKind::Character,
        user_id: None,
        character_id: None,
        role: membership::MembershipRole::Member,
        position: id,
        status: membership::MembershipStatus::Active,
        participation: membership::Participation::Active,
        is_away: false,
        cached_display_name: name.to_owned(),
        own_display_name: None,
        avatar_hash: None,
        aliases: json!([]),
        active_persona_id: None,
        translate: membership::TranslationChoice::OnDemand,
        persona: None,
        talkativeness: None,
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

/// Returns the state of an empty conversation in a space with default settings.
pub fn empty_state(members: Vec<membership::Model>) -> ScheduleState {
    ScheduleState {
        conversation: conversation::Model {
            id: ConversationId(1),
            space_id: SpaceId(1),
            kind: conversation::ConversationKind::Root,
            title: String::new(),
            parent_conversation_id: None,
            forked_from_message_id: None,
            rev: 0,
            last_seq: 0,
            last_speaker_membership_id: None,
            last_assistant_seq: None,
            last_user_seq: None,
            needs_step: false,
            last_run_seq: 0,
            auto_mode_turns: 0,
            settings: json!({}),
            variables: json!({}),
            created_at: Timestamp(0),
            archived_at: None,
            is_hidden: false,
            text_bytes: 0,
            tokens_used: 0,
            unlearned_from_seq: None,
            prompt_starts: serde_json::json!([]),
            summary_from_seq: 1,
            summary_goal_seq: 0,
        },
        space: space::Model {
            id: SpaceId(1),
            name: "Stage".to_owned(),
            description: String::new(),
            owner_id: None,
            translation_provider_id: None,
            director_provider_id: None,
            model_language: None,
            status: space::SpaceStatus::Active,
            reply_order: space::ReplyOrder::List,
            replies_per_turn: space::RepliesPerTurn::One,
            card_handling_mode: space::CardHandlingMode::Swap,
            allow_self_responses: false,
            auto_mode_enabled: false,
            auto_mode_delay_ms: 5_000,
            auto_mode_max_turns: 8,
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
        },
        members,
        round: None,
        queued: None,
        running: None,
        tail: None,
        last_speaker: None,
        spoken_in_epoch: HashSet::new(),
        talkativeness: HashMap::new(),
        facts: CommandFacts::None,
    }
}
