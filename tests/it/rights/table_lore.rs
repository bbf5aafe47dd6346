//! The rows of the grid that are about lorebooks and where they take part.

use serde_json::json;

use crate::rights::table::{Row, inside, managers, owners, signed_in};

/// Whose book it is, and the admin; for all others it is not there.
const fn whose(status: u16) -> [u16; 9] {
    let s = status;
    [401, 404, 404, 404, 404, s, s, 404, 404]
}

pub fn lorebooks() -> Vec<Row> {
    vec![
        Row::of("GET /api/lorebooks", signed_in(200)),
        Row::of("POST /api/lorebooks", signed_in(201)).body(|_, _| json!({"name": "Mine"})),
        // The grid sends JSON, but this endpoint accepts a form.
        Row::of("POST /api/lorebooks/import", signed_in(415)),
        Row::of("GET /api/lorebooks/{lorebook_id}", whose(200)),
        Row::of("PATCH /api/lorebooks/{lorebook_id}", whose(200))
            .body(|_, _| json!({"name": "Other"})),
        Row::of("DELETE /api/lorebooks/{lorebook_id}", whose(204)),
        Row::of("GET /api/lorebooks/{lorebook_id}/export", whose(200)),
        Row::of("POST /api/lorebooks/{lorebook_id}/test", whose(200))
            .body(|_, _| json!({"text": "Rain?"})),
        Row::of("GET /api/lorebooks/{lorebook_id}/entries", whose(200)),
        Row::of("POST /api/lorebooks/{lorebook_id}/entries", whose(201))
            .body(|_, _| json!({"keys": ["snow"]})),
        Row::of(
            "GET /api/lorebooks/{lorebook_id}/entries/{lorebook_entry_id}",
            whose(200),
        ),
        Row::of(
            "PATCH /api/lorebooks/{lorebook_id}/entries/{lorebook_entry_id}",
            whose(200),
        )
        .body(|_, _| json!({"content": "It pours."})),
        Row::of(
            "DELETE /api/lorebooks/{lorebook_id}/entries/{lorebook_entry_id}",
            whose(204),
        ),
    ]
}

pub fn links() -> Vec<Row> {
    vec![
        Row::of("GET /api/spaces/{space_id}/lorebooks", inside(200)),
        Row::of("PUT /api/spaces/{space_id}/lorebooks", managers(200))
            .body(|_, _| json!({"lorebook_ids": []})),
        Row::of(
            "GET /api/conversations/{conversation_id}/lorebooks",
            inside(200),
        ),
        Row::of(
            "PUT /api/conversations/{conversation_id}/lorebooks",
            managers(200),
        )
        .body(|_, _| json!({"lorebook_ids": []})),
        Row::of("GET /api/characters/{character_id}/lorebooks", inside(200)),
        Row::of("PUT /api/characters/{character_id}/lorebooks", owners(200))
            .body(|_, _| json!({"lorebook_ids": []})),
    ]
}
