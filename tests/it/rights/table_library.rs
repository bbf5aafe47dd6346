//! The rows of the grid for characters, personas and presets.

use serde_json::json;

use crate::rights::table::{Row, inside, one_owner, owners, signed_in};

pub fn characters() -> Vec<Row> {
    vec![
        Row::of("GET /api/characters", signed_in(200)),
        Row::of("POST /api/characters", signed_in(201)).body(|_, _| json!({"name": "Mine"})),
        // The grid sends JSON, but this endpoint accepts a form.
        Row::of("POST /api/characters/import", signed_in(415)),
        Row::of("POST /api/characters/preview", signed_in(415)),
        Row::of("PUT /api/characters/{character_id}/avatar", owners(415)),
        Row::of("DELETE /api/characters/{character_id}/avatar", owners(200)),
        Row::of("GET /api/characters/{character_id}", inside(200)),
        Row::of("PATCH /api/characters/{character_id}", owners(200))
            .body(|_, _| json!({"description": "Another."})),
        Row::of("DELETE /api/characters/{character_id}", owners(204)),
        Row::of(
            "GET /api/characters/{character_id}/export",
            [401, 404, 403, 403, 403, 200, 200, 404, 404],
        ),
        // This character has no picture, so both kinds of roles get 404.
        Row::of("GET /api/characters/{character_id}/avatar", inside(404)),
    ]
}

pub fn personas() -> Vec<Row> {
    vec![
        Row::of("GET /api/personas", signed_in(200)),
        Row::of("POST /api/personas", signed_in(201)).body(|_, _| json!({"name": "Mine"})),
        Row::of("POST /api/personas/import", signed_in(415)),
        Row::of("GET /api/personas/export", signed_in(200)),
        Row::of("GET /api/personas/{persona_id}", one_owner(200)),
        Row::of("PATCH /api/personas/{persona_id}", one_owner(200))
            .body(|_, _| json!({"description": "A sailor."})),
        // It has no picture, and the body is no form.
        Row::of("GET /api/personas/{persona_id}/avatar", one_owner(404)),
        Row::of("PUT /api/personas/{persona_id}/avatar", one_owner(415)),
        Row::of("DELETE /api/personas/{persona_id}/avatar", one_owner(200)),
        Row::of("DELETE /api/personas/{persona_id}", one_owner(204)),
    ]
}

pub fn presets() -> Vec<Row> {
    vec![
        Row::of("GET /api/presets", signed_in(200)),
        Row::of("GET /api/presets/defaults", signed_in(200)),
        Row::of("POST /api/presets", signed_in(201)).body(|_, _| json!({"name": "Mine"})),
        Row::of("GET /api/presets/{preset_id}", inside(200)),
        Row::of("PATCH /api/presets/{preset_id}", owners(200))
            .body(|_, _| json!({"document": {"temperature": 0.5}})),
        Row::of("DELETE /api/presets/{preset_id}", owners(204)),
        // The body is no form: roles that may upload a file get that error, others do not.
        Row::of("POST /api/presets/preview", signed_in(415)),
        Row::of("POST /api/presets/import", signed_in(415)),
        Row::of("POST /api/presets/{preset_id}/expand", inside(200))
            .body(|_, _| json!({"text": "{{user}}"})),
        Row::of("GET /api/presets/{preset_id}/export", inside(200)),
        Row::of("POST /api/regex_scripts/test", signed_in(200))
            .body(|_, _| json!({"script": {"findRegex": "a"}, "text": "a"})),
    ]
}
