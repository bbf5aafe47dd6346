//! Tests that every kind of file in `tests/fixtures/preset_kinds.json` is read, or rejected with an error that
//! names it.

use std::fs;

use serde::Deserialize;
use serde_json::Value;

use super::{PresetFileKind, detect};
use crate::presets::preset_file;
use crate::presets::preset_file::PresetFormat;

/// A file, with the kind that is detected and the keys that it sets, or with a part of its error.
#[derive(Deserialize)]
struct Sample {
    name: String,
    file: Value,
    reads: Option<String>,
    #[serde(default)]
    sets: Vec<String>,
    refused: Option<String>,
}

fn samples() -> Vec<Sample> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/fixtures/preset_kinds.json"
    );
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn kind_name(kind: PresetFileKind) -> &'static str {
    match kind {
        PresetFileKind::Own => "own",
        PresetFileKind::Settings => "settings",
        PresetFileKind::Master => "master",
        PresetFileKind::ChatCompletion => "chat_completion",
        PresetFileKind::Samplers => "samplers",
        PresetFileKind::Template(_) => "template",
    }
}

#[test]
fn each_kind_of_file_is_read_or_refused_by_name() {
    let samples = samples();
    for sample in &samples {
        let name = &sample.name;
        let bytes = sample.file.to_string();
        match (preset_file::read(bytes.as_bytes()), &sample.refused) {
            (Ok(read), None) => {
                let kind = kind_name(detect(&sample.file).unwrap());
                assert_eq!(Some(kind), sample.reads.as_deref(), "{name}");
                let fields = read.document.as_object().unwrap();
                assert!(!fields.is_empty(), "{name}");
                for key in &sample.sets {
                    assert!(fields.contains_key(key), "{name} sets {key}: {fields:?}");
                }
            }
            (Err(error), Some(words)) => {
                assert!(error.to_string().contains(words), "{name}: {error}");
            }
            (result, _) => panic!("{name}: {result:?}"),
        }
    }
    assert!(samples.len() >= 135, "{} kinds", samples.len());
}

#[test]
fn every_file_that_is_read_survives_an_export() {
    for sample in samples().into_iter().filter(|it| it.refused.is_none()) {
        let first = preset_file::read(sample.file.to_string().as_bytes()).unwrap();
        let file = preset_file::write(
            PresetFormat::Own,
            "Name",
            &first.document,
            first.origin.as_ref(),
        );
        let again = preset_file::read(file.to_string().as_bytes()).unwrap();
        assert_eq!(again.document, first.document, "{}", sample.name);

        if sample.reads.as_deref() != Some("own") {
            let form = PresetFormat::SillyTavern;
            let file = preset_file::write(form, "", &first.document, first.origin.as_ref());
            let again = preset_file::read(file.to_string().as_bytes()).unwrap();
            let name = &sample.name;
            assert_eq!(again.document, first.document, "{name}: {file}");
        }
    }
}
