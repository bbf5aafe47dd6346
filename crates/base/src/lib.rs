//! Types that several crates share: ids, time, shutdown, derived keys, names, message texts and
//! fail points.
//!
#![doc = include_str!("../README.md")]
//!
//! | module | contents |
//! | --- | --- |
//! | [`ids`] | one type for each kind of id |
//! | [`clock`] | the current time, and timestamps |
//! | [`shutdown`] | the three tokens of a shutdown, and the tracker of background tasks |
//! | [`key_derivation`] | one key for each purpose, from one secret |
//! | [`display_name`] | which display names are valid |
//! | [`language_tag`] | which language tags are valid |
//! | [`message_text`] | which texts of messages are valid |
//! | [`prompt_role`], [`samplers`] | the roles and samplers that presets, lorebooks and model requests share |
//! | [`mod@fail_point`] | places at which a test makes the process fail |

pub mod clock;
pub mod display_name;
pub mod fail_point;
pub mod ids;
pub mod key_derivation;
pub mod language_tag;
pub mod message_text;
pub mod prompt_role;
pub mod samplers;
pub mod shutdown;
