//! Modules that convert presets from and to the preset files of SillyTavern. No I/O.
//!
//! The fields of a file that we do not use are its *origin*: it is stored with the preset and
//! exported with it, so that nothing is lost. Addresses and passwords are not stored.

pub mod chat_completion;
pub mod chat_completion_export;
pub mod field_reader;
pub mod prompt_order;
pub mod settings_file;
pub mod text_completion;
