//! Tests in a real browser: headless Chromium, driven through chromedriver, against the real binary.
//!
//! Each test has its own server, database, fake provider and an empty browser. Waits are for facts
//! in the page.

mod account;
mod actions;
mod admin;
mod auto_mode;
mod browser;
mod browser_history;
mod cards;
mod commands;
mod content;
mod continue_message;
mod copilot;
mod device;
mod edits;
mod entry;
mod evening;
mod files;
mod group_play_evening;
mod inspector;
mod invitations;
mod joining;
mod keys;
mod language;
mod loading;
mod lore;
mod members_tab;
mod memories;
mod memory_events;
mod navigation;
mod nodes;
mod out_of_character;
mod page;
// Its figures that are not checked here are printed by `benches/first_paint.rs`.
#[allow(dead_code)]
mod page_load;
mod people;
mod personas;
mod picture;
mod pictures;
mod presence;
mod presets;
mod provider_requests;
mod reasoning;
mod reference;
mod regex_scripts;
mod replies;
mod round_edit;
mod rounds;
mod runs;
mod scheduling;
mod search;
mod sending;
mod several_users;
mod space_files;
mod streaming;
mod summaries;
mod test_server;
// Shared with the other test binaries; none of them uses all of it.
#[allow(dead_code, unused_imports)]
mod support;
mod timeline;
mod tools;
mod translations;
mod turns;
mod versions;
mod whispers;
