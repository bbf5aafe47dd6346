//! Persona backups of SillyTavern: reading and writing, also as archives with pictures.

pub mod persona_archive;
pub mod persona_backup;
pub mod persona_placement;
