//! Reads and writes files of SillyTavern (cards, chats, lorebooks, presets), and implements its
//! lorebook engine and macros.
//!
#![doc = include_str!("../README.md")]
//!
//! | module | contents |
//! | --- | --- |
//! | [`cards`] | character cards: parsing, repair, avatars, assets, export |
//! | [`chats`] | chat files: reading and writing |
//! | [`documents`] | JSON and YAML files, invalid UTF-8, line endings |
//! | [`instruct`] | templates for text completion, and their files |
//! | [`lorebook`] | the lorebook engine |
//! | [`lorebook_files`] | lorebook files of several tools |
//! | [`macros`] | parsing and expansion of macros |
//! | [`pattern`] | regular expressions with the meaning of JavaScript |
//! | [`personas`] | persona backups: reading and writing |
//! | [`pictures`] | pictures from outside: decoding within limits, pictures of messages |
//! | [`presets`] | presets and their files |
//! | [`regex_scripts`] | regex scripts of cards and presets |
//! | [`import_warning`] | what was repaired or skipped in an import |
//! | [`seeded_random`] | random numbers from a seed |

pub mod cards;
pub mod chats;
pub mod documents;
pub mod import_warning;
pub mod instruct;
pub mod lorebook;
pub mod lorebook_files;
pub mod macros;
pub mod pattern;
pub mod personas;
pub mod pictures;
pub mod presets;
pub mod regex_scripts;
pub mod seeded_random;
