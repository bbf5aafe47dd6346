//! Lists all API endpoints and the tags of the API document. Each handler declares its own method
//! and path; see `web/openapi/endpoint.rs`.

use crate::web::api::admin::{runs as admin_runs, stats as admin_stats, users as admin_users};
use crate::web::api::{
    api_keys, attachments, avatars, bookmarks, candidates, card_files, characters, chat_exports,
    conversation_actions, conversations, health, imports, invites, jobs, join, lorebook_entries,
    lorebook_links, lorebook_testing, lorebooks, membership_updates, memberships, memories,
    memory_embedding, memory_learning, memory_pruning, memory_transfer, message_changes,
    message_continue, message_revisions, message_versions, messages, metrics, next_speaker,
    persona_files, personas, preset_expansion, preset_files, presets, prompts, providers,
    queue_edit, reactions, regex_scripts, runs, search, session, setup, space_files,
    space_invitations, spaces, summaries, swipes, tool_approvals, translations, users,
};
use crate::web::openapi::endpoint::{ApiEndpoint, endpoints};

/// The tags of the API document, in its order, with their descriptions. A handler names its tag in
/// `tag`.
pub const TAGS: [(&str, &str); 23] = [
    ("setup", "First-time setup: the admin account."),
    ("session", "Sign-in, sign-out, and active sessions."),
    ("users", "User accounts."),
    ("api_keys", "API keys for programs."),
    (
        "spaces",
        "Containers of members, settings and conversations.",
    ),
    (
        "memberships",
        "Members of a space, who are people or characters.",
    ),
    ("invites", "Invite links, and joining by one."),
    (
        "invitations",
        "Invitations of one person, who accepts or declines.",
    ),
    (
        "conversations",
        "Conversations, and the control of their scheduler.",
    ),
    (
        "messages",
        "Messages, and their alternative versions (swipes).",
    ),
    (
        "runs",
        "Attempts to generate a text, with reason and result.",
    ),
    ("imports", "Imports of chat and space files."),
    (
        "jobs",
        "Background jobs: branches, deletions, and imports of files.",
    ),
    ("characters", "Character cards."),
    (
        "lorebooks",
        "Lorebooks (World Info), their entries and links.",
    ),
    ("memories", "What is remembered about a space."),
    ("personas", "The roles that a person plays."),
    (
        "presets",
        "Presets: prompt order, prompt texts, and sampler settings.",
    ),
    (
        "providers",
        "Model providers with their addresses, keys and models.",
    ),
    ("admin", "Server administration."),
    ("socket", "Live events over WebSocket."),
    ("server", "Health, metrics, and this document."),
    (
        "v1",
        "The API for programs that use OpenAI's protocols: responses, chat completions, embeddings, threads.",
    ),
];

/// Returns all endpoints in the order of the API document.
pub fn all_endpoints() -> Vec<ApiEndpoint> {
    [
        account_endpoints(),
        space_endpoints(),
        library_endpoints(),
        lore_endpoints(),
        memory_endpoints(),
        conversation_endpoints(),
        server_endpoints(),
    ]
    .concat()
}

fn account_endpoints() -> Vec<ApiEndpoint> {
    endpoints![
        setup::show_status,
        setup::create_admin,
        session::sign_in,
        session::current,
        session::sign_out,
        session::list,
        session::end,
        users::register,
        users::update_me,
        api_keys::list,
        api_keys::create,
        api_keys::revoke,
    ]
}

fn space_endpoints() -> Vec<ApiEndpoint> {
    endpoints![
        spaces::list,
        spaces::create,
        space_files::import,
        space_files::export,
        spaces::show,
        spaces::update,
        spaces::delete,
        memberships::list,
        memberships::create,
        membership_updates::update,
        memberships::leave,
        invites::list,
        invites::create,
        invites::revoke,
        space_invitations::list_for_space,
        space_invitations::list_own,
        space_invitations::accept,
        space_invitations::decline,
        space_invitations::revoke,
        join::preview,
        join::join,
    ]
}

fn library_endpoints() -> Vec<ApiEndpoint> {
    endpoints![
        characters::list,
        characters::create,
        card_files::preview,
        card_files::import,
        characters::show,
        characters::update,
        characters::delete,
        card_files::export,
        avatars::show,
        avatars::set_avatar,
        avatars::delete_avatar,
        personas::list,
        personas::create,
        personas::show,
        personas::update,
        personas::delete,
        personas::avatar,
        personas::set_avatar,
        personas::delete_avatar,
        persona_files::import,
        persona_files::export,
        presets::list,
        presets::defaults,
        presets::create,
        presets::show,
        presets::update,
        presets::delete,
        preset_expansion::expand,
        regex_scripts::test,
        preset_files::preview,
        preset_files::import,
        preset_files::export,
        providers::list,
        providers::create,
        // Must precede the paths with an id in the same place.
        providers::discover,
        providers::update,
        providers::delete,
        providers::test,
        providers::list_models,
    ]
}

fn memory_endpoints() -> Vec<ApiEndpoint> {
    endpoints![
        memories::list,
        memories::create,
        memories::forget,
        memory_learning::learn,
        memory_pruning::prune,
        // Must precede the path with an id in the same place.
        memory_transfer::export,
        memory_transfer::import,
        memory_embedding::show_state,
        memory_embedding::test_embedding,
        memories::show,
        memories::update,
        memories::delete,
        memories::list_for_run,
        summaries::list,
        summaries::request,
        summaries::show,
        summaries::update,
        summaries::restore,
    ]
}

fn lore_endpoints() -> Vec<ApiEndpoint> {
    endpoints![
        lorebooks::list,
        lorebooks::create,
        lorebooks::import,
        lorebooks::show,
        lorebooks::update,
        lorebooks::export,
        lorebook_testing::test,
        lorebook_entries::list,
        lorebook_entries::create_entry,
        lorebook_entries::show,
        lorebook_entries::update_entry,
        lorebook_entries::delete_entry,
        lorebooks::delete,
        lorebook_links::list_for_space,
        lorebook_links::set_for_space,
        lorebook_links::list_for_conversation,
        lorebook_links::set_for_conversation,
        lorebook_links::list_for_character,
        lorebook_links::set_for_character,
    ]
}

fn conversation_endpoints() -> Vec<ApiEndpoint> {
    endpoints![
        conversations::list,
        conversations::create,
        conversations::show,
        conversations::update,
        conversations::delete,
        conversations::mark_read,
        next_speaker::show,
        prompts::preview,
        chat_exports::export,
        imports::preview,
        imports::import,
        imports::show,
        imports::cancel,
        jobs::list,
        jobs::show,
        jobs::cancel,
        tool_approvals::decide,
        tool_approvals::list_open,
        message_versions::branch,
        messages::list,
        messages::create,
        message_changes::update,
        message_changes::hide,
        reactions::add,
        reactions::remove,
        translations::show,
        bookmarks::add,
        bookmarks::remove,
        bookmarks::list,
        attachments::upload,
        attachments::show,
        attachments::update,
        attachments::delete,
        swipes::list,
        message_versions::select,
        message_versions::select_by_post,
        message_revisions::list,
        search::search,
        conversation_actions::generate,
        message_versions::regenerate,
        message_continue::continue_message,
        conversation_actions::stop,
        conversation_actions::pause,
        conversation_actions::resume,
        conversation_actions::skip,
        conversation_actions::retry,
        queue_edit::replace,
        candidates::suggest,
        runs::list,
        runs::show,
        prompts::show_sent,
        runs::cancel,
    ]
}

fn server_endpoints() -> Vec<ApiEndpoint> {
    endpoints![
        admin_users::list,
        admin_users::show,
        admin_users::update,
        admin_runs::list,
        admin_stats::show,
        runs::reap,
        health::live,
        health::ready,
        metrics::show,
    ]
}
