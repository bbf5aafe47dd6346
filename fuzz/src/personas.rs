//! Persona backups: what is read keeps the limits, and is read again unchanged after it was written.

use tavern::personas::persona_backup;
use tavern::personas::persona_backup::{MAX_DESCRIPTION_BYTES, MAX_PERSONAS};

/// Reads the bytes as a persona backup.
pub fn check(data: &[u8]) {
    let Ok(backup) = persona_backup::read(data) else {
        return;
    };
    assert!(backup.personas.len() <= MAX_PERSONAS);
    for persona in &backup.personas {
        assert!((1..=100).contains(&persona.name.chars().count()));
        assert!(persona.description.len() <= MAX_DESCRIPTION_BYTES);
    }
    let file = persona_backup::write(&backup.personas).to_string();
    let back = persona_backup::read(file.as_bytes()).expect("a written backup is valid");
    assert_eq!(back.personas, backup.personas);
}
