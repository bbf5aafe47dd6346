//! The rows of the grid for lorebooks and their links.

use serde_json::json;

use crate::rights::table::{Row, inside, managers, owners, signed_in};

/// The owner of the lorebook and the admin; it is not visible to others.
const fn lorebook_owner(status: u16) -> [u16; 9] {
    let s = status;
    [401, 404, 404, 404, 404, s, s, 404, 404]
}

pub fn lorebooks() -> Vec<Row> {
    vec![
        Row::of("GET /api/lorebooks", signed_in(200)),
        Row::of("POST /api/lorebooks", signed_in(201)).body(|_, _| json!({"name": "Mine"})),
        // The grid sends JSON, but this endpoint accepts a form.
        Row::of("POST /api/lorebooks/import", signed_in(415)),
        Row::of("GET /api/lorebooks/{lorebook_id}", lorebook_owner(200)),
        Row::of("PATCH /api/lorebooks/{lorebook_id}", lorebook_owner(200))
            .body(|_, _| json!({"name": "Other"})),
        Row::of("DELETE /api/lorebooks/{lorebook_id}", lorebook_owner(204)),
        Row::of(
            "GET /api/lorebooks/{lorebook_id}/export",
            lorebook_owner(200),
        ),
        Row::of(
            "POST /api/lorebooks/{lorebook_id}/test",
            lorebook_owner(200),
        )
        .body(|_, _| json!({"text": "Rain?"})),
        Row::of(
            "GET /api/lorebooks/{lorebook_id}/entries",
            lorebook_owner(200),
        ),
        Row::of(
            "POST /api/lorebooks/{lorebook_id}/entries",
            lorebook_owner(201),
        )
        .body(|_, _| json!({"keys": ["snow"]})),
        Row::of(
            "GET /api/lorebooks/{lorebook_id}/entries/{lorebook_entry_id}",
            lorebook_owner(200),
        ),
        Row::of(
            "PATCH /api/lorebooks/{lorebook_id}/entries/{lorebook_entry_id}",
            lorebook_owner(200),
        )
        .body(|_, _| json!({"content": "It pours."})),
        Row::of(
            "DELETE /api/lorebooks/{lorebook_id}/entries/{lorebook_entry_id}",
            lorebook_owner(204),
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
