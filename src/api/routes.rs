//! The whole surface on one screen. A handler carries its method and its path; see `http/endpoint.rs`.

use crate::api::admin::runs as admin_runs;
use crate::api::admin::stats as admin_stats;
use crate::api::admin::users as admin_users;
use crate::api::api_keys;
use crate::api::avatars;
use crate::api::buttons;
use crate::api::candidates;
use crate::api::card_files;
use crate::api::characters;
use crate::api::conversations;
use crate::api::exports;
use crate::api::health;
use crate::api::imports;
use crate::api::invites;
use crate::api::jobs;
use crate::api::join;
use crate::api::lorebook_entries;
use crate::api::lorebook_links;
use crate::api::lorebooks;
use crate::api::memberships;
use crate::api::messages;
use crate::api::metrics;
use crate::api::preset_files;
use crate::api::presets;
use crate::api::prompts;
use crate::api::providers;
use crate::api::queue;
use crate::api::runs;
use crate::api::search;
use crate::api::seat_changes;
use crate::api::session;
use crate::api::setup;
use crate::api::space_files;
use crate::api::space_invitations;
use crate::api::spaces;
use crate::api::swipes;
use crate::api::tool_approvals;
use crate::api::users;
use crate::api::versions;
use crate::http::endpoint::ApiEndpoint;
use crate::http::endpoint::endpoints;

/// The rooms in the order in which the document tells of them, each in a sentence. A door names its
/// own as `tag`.
pub const ROOMS: [(&str, &str); 20] = [
    ("setup", "The first visit: the account of the admin."),
    ("session", "Signing in and out, and where one is signed in."),
    ("users", "Accounts, and one's own."),
    ("api_keys", "Keys for one's own programs."),
    (
        "spaces",
        "Rooms as configuration: who speaks, when, and by which rules.",
    ),
    (
        "memberships",
        "Seats in a space, of people and of characters.",
    ),
    ("invites", "Links that let people in, and coming in by one."),
    (
        "invitations",
        "One person is asked to join a space, and accepts or declines.",
    ),
    (
        "conversations",
        "Timelines, and the buttons that move their schedule.",
    ),
    (
        "messages",
        "What was said, and the other texts it might have.",
    ),
    (
        "runs",
        "Attempts to produce a text: why, how long, what came of it.",
    ),
    ("imports", "Chats and spaces that come in as files."),
    (
        "jobs",
        "Work in the background: branches, deletions and imports.",
    ),
    ("characters", "Character cards."),
    (
        "lorebooks",
        "Books of lore, their entries, and where they take part.",
    ),
    (
        "presets",
        "The order of a prompt, the words around it, and the samplers.",
    ),
    (
        "providers",
        "Models: where they answer, and with which key.",
    ),
    ("admin", "For whoever runs the server."),
    ("socket", "What happens, as it happens."),
    ("server", "Whether the process lives, and this document."),
];

/// Every door of this floor, in the order in which the document tells of them.
pub fn all() -> Vec<ApiEndpoint> {
    [people(), rooms(), shelf(), lore(), play(), house()].concat()
}

fn people() -> Vec<ApiEndpoint> {
    endpoints![
        setup::needed,
        setup::set_up,
        session::sign_in,
        session::current,
        session::sign_out,
        session::list,
        session::end,
        users::register,
        users::change_me,
        api_keys::list,
        api_keys::create,
        api_keys::revoke,
    ]
}

fn rooms() -> Vec<ApiEndpoint> {
    endpoints![
        spaces::list,
        spaces::create,
        space_files::import,
        space_files::export,
        spaces::show,
        spaces::change,
        spaces::delete,
        memberships::list,
        memberships::create,
        seat_changes::change,
        memberships::leave,
        invites::list,
        invites::create,
        invites::revoke,
        space_invitations::of_space,
        space_invitations::own,
        space_invitations::accept,
        space_invitations::decline,
        space_invitations::revoke,
        join::look,
        join::join,
    ]
}

fn shelf() -> Vec<ApiEndpoint> {
    endpoints![
        characters::list,
        characters::create,
        card_files::preview,
        card_files::import,
        characters::show,
        characters::change,
        characters::delete,
        card_files::export,
        avatars::avatar,
        avatars::paint,
        avatars::unpaint,
        presets::list,
        presets::defaults,
        presets::create,
        presets::show,
        presets::change,
        presets::delete,
        preset_files::import,
        preset_files::export,
        providers::list,
        providers::create,
        // Before those with an id in its place.
        providers::discover,
        providers::change,
        providers::delete,
        providers::test,
        providers::models,
    ]
}

fn lore() -> Vec<ApiEndpoint> {
    endpoints![
        lorebooks::list,
        lorebooks::create,
        lorebooks::import,
        lorebooks::show,
        lorebooks::change,
        lorebooks::export,
        lorebooks::test,
        lorebook_entries::entries,
        lorebook_entries::write_entry,
        lorebook_entries::entry,
        lorebook_entries::rewrite_entry,
        lorebook_entries::strike_entry,
        lorebooks::delete,
        lorebook_links::of_space,
        lorebook_links::arrange_space,
        lorebook_links::of_conversation,
        lorebook_links::arrange_conversation,
        lorebook_links::of_character,
        lorebook_links::arrange_character,
    ]
}

fn play() -> Vec<ApiEndpoint> {
    endpoints![
        conversations::list,
        conversations::create,
        conversations::show,
        conversations::change,
        conversations::delete,
        conversations::read,
        prompts::preview,
        exports::export,
        imports::chat,
        imports::show,
        imports::cancel,
        jobs::list,
        jobs::show,
        jobs::cancel,
        tool_approvals::decide,
        tool_approvals::open,
        versions::branch,
        messages::list,
        messages::create,
        messages::change,
        messages::hide,
        swipes::swipes,
        versions::select,
        search::find,
        buttons::generate,
        versions::regenerate,
        buttons::stop,
        buttons::pause,
        buttons::resume,
        buttons::skip,
        buttons::retry,
        queue::arrange,
        candidates::suggest,
        runs::list,
        runs::show,
        prompts::sent,
        runs::cancel,
    ]
}

fn house() -> Vec<ApiEndpoint> {
    endpoints![
        admin_users::list,
        admin_users::show,
        admin_users::change,
        admin_runs::list,
        admin_stats::show,
        runs::reap,
        health::alive,
        health::ready,
        metrics::tell,
    ]
}
