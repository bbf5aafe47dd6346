//! Defines `Migrator`, the ordered list of all database migrations: one file for each, which can be
//! applied and reverted on SQLite and PostgreSQL.
//!
//! An applied migration never changes: add a new one.

pub use sea_orm_migration::prelude::MigratorTrait;

use sea_orm_migration::prelude::*;

mod columns;
mod m20261121_000001_create_accounts;
mod m20261121_000002_create_library;
mod m20261121_000003_create_spaces;
mod m20261121_000004_create_conversations;
mod m20261121_000005_create_runs;
mod m20261121_000006_create_messages;
mod m20261121_000008_index_finished_runs;
mod m20261122_000009_rounds_and_auto_mode;
mod m20261122_000010_versions;
mod m20261122_000012_tell_runs_by_space;
mod m20261122_000013_pictures;
mod m20261122_000014_create_lore;
mod m20261122_000015_presets;
mod m20261122_000016_search_messages;
mod m20261122_000017_run_prompts;
mod m20261122_000019_find_messages_by_run;
mod m20261122_000026_imports;
mod m20261122_000030_find_what_goes_with_a_seat;
mod m20261122_000031_find_unused_assets;
mod m20261122_000040_responses;
mod m20261122_000041_tool_approvals;
mod m20261123_000050_jobs;
mod m20261123_000053_index_runs_by_status;
mod m20261123_000054_store_newest_messages;
mod m20261123_000055_mark_conversations;
mod m20261123_000056_names_that_look_alike;
mod m20261123_000057_space_invitations;
mod m20261123_000058_share_whole_card;
mod m20261123_000059_waiting_runs;
mod m20261123_000060_keep_forced_turns;
mod m20261123_000061_write_probe;
mod m20261123_000062_instance_lock;
mod m20261123_000065_index_memberships;
mod m20261123_000066_order_runs;
mod m20261123_000067_message_versions;
mod m20261123_000070_small_search_writes;
mod m20261123_000071_leases_of_jobs;
mod m20261126_000072_roster_revisions;
mod m20261126_000073_slots_of_rounds;
mod m20261127_000074_tokens_of_conversations;
mod m20261127_000075_memories;
mod m20261127_000076_prompt_starts;
mod m20261127_000077_conversation_summaries;
mod m20261127_000078_embedding_models_of_spaces;
mod m20261128_000080_memory_of_messages;
mod m20261128_000083_last_recalls;
mod m20261128_000084_memory_tokens;
mod m20261128_000085_threads;
mod m20261128_000086_thread_run_events;
mod m20261128_000087_idempotency_keys;
mod m20261128_000088_message_revisions;
mod m20261128_000090_continue_runs;
mod m20261128_000091_personas;
mod m20261128_000092_personas_of_messages;
mod m20261128_000093_replies;
mod m20261128_000094_reactions;
mod m20261128_000095_bookmarks;
mod m20261128_000096_out_of_character;
mod m20261128_000097_slow_mode;
mod m20261129_000098_whispers;
mod m20261129_000104_attachments;
mod m20261129_000105_translations;
mod m20261129_000106_translation_settings;
mod m20261129_000110_turns_of_people;
mod m20261129_000112_runs_without_speaker;
mod m20261129_000113_director;
mod m20261130_000114_regex_scripts;
mod m20261130_000115_positions_of_personas;

/// The steps, in order.
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m20261121_000001_create_accounts::Migration),
            Box::new(m20261121_000002_create_library::Migration),
            Box::new(m20261121_000003_create_spaces::Migration),
            Box::new(m20261121_000004_create_conversations::Migration),
            Box::new(m20261121_000005_create_runs::Migration),
            Box::new(m20261121_000006_create_messages::Migration),
            Box::new(m20261121_000008_index_finished_runs::Migration),
            Box::new(m20261122_000009_rounds_and_auto_mode::Migration),
            Box::new(m20261122_000010_versions::Migration),
            Box::new(m20261122_000012_tell_runs_by_space::Migration),
            Box::new(m20261122_000013_pictures::Migration),
            Box::new(m20261122_000014_create_lore::Migration),
            Box::new(m20261122_000015_presets::Migration),
            Box::new(m20261122_000016_search_messages::Migration),
            Box::new(m20261122_000019_find_messages_by_run::Migration),
            Box::new(m20261122_000026_imports::Migration),
            Box::new(m20261122_000017_run_prompts::Migration),
            Box::new(m20261122_000030_find_what_goes_with_a_seat::Migration),
            Box::new(m20261122_000031_find_unused_assets::Migration),
            Box::new(m20261122_000040_responses::Migration),
            Box::new(m20261122_000041_tool_approvals::Migration),
            Box::new(m20261123_000050_jobs::Migration),
            Box::new(m20261123_000053_index_runs_by_status::Migration),
            Box::new(m20261123_000054_store_newest_messages::Migration),
            Box::new(m20261123_000055_mark_conversations::Migration),
            Box::new(m20261123_000056_names_that_look_alike::Migration),
            Box::new(m20261123_000057_space_invitations::Migration),
            Box::new(m20261123_000058_share_whole_card::Migration),
            Box::new(m20261123_000059_waiting_runs::Migration),
            Box::new(m20261123_000060_keep_forced_turns::Migration),
            Box::new(m20261123_000061_write_probe::Migration),
            Box::new(m20261123_000062_instance_lock::Migration),
            Box::new(m20261123_000065_index_memberships::Migration),
            Box::new(m20261123_000066_order_runs::Migration),
            Box::new(m20261123_000067_message_versions::Migration),
            Box::new(m20261123_000070_small_search_writes::Migration),
            Box::new(m20261123_000071_leases_of_jobs::Migration),
            Box::new(m20261126_000072_roster_revisions::Migration),
            Box::new(m20261126_000073_slots_of_rounds::Migration),
            Box::new(m20261127_000074_tokens_of_conversations::Migration),
            Box::new(m20261127_000075_memories::Migration),
            Box::new(m20261127_000076_prompt_starts::Migration),
            Box::new(m20261127_000077_conversation_summaries::Migration),
            Box::new(m20261127_000078_embedding_models_of_spaces::Migration),
            Box::new(m20261128_000080_memory_of_messages::Migration),
            Box::new(m20261128_000083_last_recalls::Migration),
            Box::new(m20261128_000084_memory_tokens::Migration),
            Box::new(m20261128_000085_threads::Migration),
            Box::new(m20261128_000086_thread_run_events::Migration),
            Box::new(m20261128_000087_idempotency_keys::Migration),
            Box::new(m20261128_000088_message_revisions::Migration),
            Box::new(m20261128_000090_continue_runs::Migration),
            Box::new(m20261128_000091_personas::Migration),
            Box::new(m20261128_000092_personas_of_messages::Migration),
            Box::new(m20261128_000096_out_of_character::Migration),
            Box::new(m20261128_000097_slow_mode::Migration),
            Box::new(m20261128_000093_replies::Migration),
            Box::new(m20261128_000094_reactions::Migration),
            Box::new(m20261128_000095_bookmarks::Migration),
            Box::new(m20261129_000098_whispers::Migration),
            Box::new(m20261129_000104_attachments::Migration),
            Box::new(m20261129_000105_translations::Migration),
            Box::new(m20261129_000106_translation_settings::Migration),
            Box::new(m20261129_000110_turns_of_people::Migration),
            Box::new(m20261129_000112_runs_without_speaker::Migration),
            Box::new(m20261129_000113_director::Migration),
            Box::new(m20261130_000114_regex_scripts::Migration),
            Box::new(m20261130_000115_positions_of_personas::Migration),
        ]
    }
}
