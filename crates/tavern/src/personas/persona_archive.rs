//! Reads a file of personas: a persona backup of SillyTavern, or an archive with a backup and the folder
//! of its pictures (`User Avatars`). The pictures are decoded and encoded again.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Cursor, Read, Seek};

use crate::cards::avatar_image::AvatarImage;
use crate::cards::card_error::CardError;
use crate::cards::zip_archive::CardArchive;
use crate::cards::{avatar_image, zip_archive};
use crate::import_warning::ImportWarning;
use crate::personas::persona_backup;
use crate::personas::persona_backup::{MAX_FILE_BYTES, PersonaBackup, PersonaBackupError};

/// The maximum size of an archive, in bytes.
pub const MAX_BYTES: u64 = 100 * 1024 * 1024;
/// How many JSON files of an archive are tried.
const MAX_DOCUMENTS: usize = 10;

/// A backup with the pictures of its personas.
#[derive(Debug)]
pub struct PersonaFile {
    pub backup: PersonaBackup,
    /// In the order of the personas; `None` for one without a readable picture.
    pub pictures: Vec<Option<AvatarImage>>,
}

/// Reads a file that is positioned at its start. Blocks.
///
/// # Errors
/// Returns the reason when the file contains no persona backup or exceeds a limit.
pub fn read(mut file: File) -> Result<PersonaFile, PersonaBackupError> {
    if zip_archive::is_archive(&mut file) {
        return read_archive(file);
    }
    let mut bytes = Vec::new();
    let limit = MAX_FILE_BYTES as u64 + 1;
    let read = file
        .rewind()
        .and_then(|()| file.take(limit).read_to_end(&mut bytes));
    read.map_err(|_| PersonaBackupError::reason("The file cannot be read."))?;
    let backup = persona_backup::read(&bytes)?;
    let pictures = backup.personas.iter().map(|_| None).collect();
    Ok(PersonaFile { backup, pictures })
}

fn read_archive(file: File) -> Result<PersonaFile, PersonaBackupError> {
    let invalid = |error: CardError| PersonaBackupError::reason(error.to_string());
    let mut archive = CardArchive::open(file).map_err(invalid)?;
    let names = archive.names();
    let mut backup = None;
    let documents = names.iter().filter(|it| it.ends_with(".json"));
    for name in documents.take(MAX_DOCUMENTS) {
        let bytes = archive.read(name, MAX_FILE_BYTES as u64).map_err(invalid)?;
        backup = bytes.and_then(|it| persona_backup::read(&it).ok());
        if backup.is_some() {
            break;
        }
    }
    let Some(mut backup) = backup else {
        let reason = "The archive contains no persona backup of SillyTavern.";
        return Err(PersonaBackupError::reason(reason));
    };
    let by_file_name: HashMap<&str, &str> = names
        .iter()
        .map(|it| (it.rsplit('/').next().unwrap_or(it), it.as_str()))
        .collect();
    let mut pictures = Vec::new();
    let mut n_unreadable = 0;
    for picture_name in &backup.picture_names {
        let Some(path) = by_file_name.get(picture_name.as_str()) else {
            pictures.push(None);
            continue;
        };
        let bytes = archive
            .read(path, avatar_image::MAX_BYTES)
            .map_err(invalid)?;
        let picture = bytes.and_then(|it| avatar_image::re_encode(Cursor::new(it)).ok());
        n_unreadable += usize::from(picture.is_none());
        pictures.push(picture);
    }
    if n_unreadable > 0 {
        let sentence = format!("{n_unreadable} pictures of personas cannot be read.");
        let warning = ImportWarning::new("persona_pictures_unreadable", sentence);
        backup.warnings.push(warning.with("n", n_unreadable));
    }
    Ok(PersonaFile { backup, pictures })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Seek, Write};

    use serde_json::json;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::read;
    use crate::cards::avatar_image;

    fn archive(files: &[(&str, &[u8])]) -> File {
        let mut zip = ZipWriter::new(tempfile::tempfile().expect("a file"));
        for (name, bytes) in files {
            zip.start_file(*name, SimpleFileOptions::default())
                .expect("an entry");
            zip.write_all(bytes).expect("written");
        }
        let mut file = zip.finish().expect("an archive");
        file.rewind().expect("at its start");
        file
    }

    #[test]
    fn pictures_are_found_by_the_names_in_the_backup() {
        let backup = json!({
            "personas": {"a.png": "Ann", "b.png": "Ben", "c.png": "Cara"},
            "persona_descriptions": {"a.png": {"description": "A sailor."}},
        });
        let picture = avatar_image::plain_png("Ann").expect("a picture");
        let found = read(archive(&[
            ("notes.json", b"{}"),
            ("personas_20240603.json", backup.to_string().as_bytes()),
            ("User Avatars/a.png", &picture),
            ("User Avatars/b.png", b"noise"),
        ]))
        .expect("a backup");

        let has: Vec<bool> = found.pictures.iter().map(Option::is_some).collect();
        assert_eq!(has, [true, false, false]);
        assert_eq!(found.backup.personas[0].description, "A sailor.");
        let codes: Vec<_> = found
            .backup
            .warnings
            .iter()
            .map(|it| it.code.as_ref())
            .collect();
        assert_eq!(codes, ["persona_pictures_unreadable"]);
    }

    #[test]
    fn an_archive_without_a_backup_is_refused() {
        assert!(read(archive(&[("a.json", b"{}"), ("User Avatars/a.png", b"x")])).is_err());
    }
}
