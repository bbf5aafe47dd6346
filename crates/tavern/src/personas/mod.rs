//! Persona backups of SillyTavern: reading and writing.

pub mod persona_backup;
