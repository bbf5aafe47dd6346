//! The rows of the grid for memories.

use serde_json::json;

use crate::rights::table::{Row, inside, managers, members};

pub fn memories() -> Vec<Row> {
    vec![
        Row::of("GET /api/spaces/{space_id}/memories", inside(200)),
        Row::of("POST /api/spaces/{space_id}/memories", members(201)).body(
            |_, who| json!({"content": format!("{} was here.", who.name()), "kind": "event"}),
        ),
        // An admin without a membership writes about another member, which they may, too.
        Row::of("POST /api/spaces/{space_id}/memories", inside(201))
            .case("about oneself")
            .body(|ids, who| {
                json!({
                    "content": format!("{} likes rain.", who.name()),
                    "kind": "preference",
                    "about_membership_id": ids.of("membership_id:own", who),
                })
            }),
        Row::of(
            "GET /api/spaces/{space_id}/memories/{memory_id}",
            inside(200),
        ),
        Row::of(
            "PATCH /api/spaces/{space_id}/memories/{memory_id}",
            members(200),
        )
        .with_space_per_role()
        .body(|_, _| json!({"pinned": true, "expected_version": 1})),
        Row::of(
            "DELETE /api/spaces/{space_id}/memories/{memory_id}",
            members(204),
        ),
        Row::of("POST /api/spaces/{space_id}/memories/forget", managers(200))
            .with_space_per_role()
            .body(|_, _| json!({"all": true})),
        Row::of("POST /api/spaces/{space_id}/memories/forget", inside(200))
            .case("oneself")
            .body(|ids, who| json!({"about_membership_id": ids.of("membership_id:own", who)})),
        Row::of(
            "GET /api/conversations/{conversation_id}/summaries",
            inside(200),
        ),
        // The space has only the demo model.
        Row::of(
            "POST /api/conversations/{conversation_id}/summaries",
            members(409),
        ),
        Row::of("GET /api/summaries/{summary_id}", inside(200)),
        // It is in use, so there is nothing to restore.
        Row::of("POST /api/summaries/{summary_id}/restore", members(200)),
        Row::of("PATCH /api/summaries/{summary_id}", members(200))
            .with_space_per_role()
            .body(|_, _| json!({"pinned_facts": ["It rains."], "expected_version": 1})),
        Row::of("POST /api/spaces/{space_id}/memories/learn", members(202))
            .body(|ids, who| json!({"conversation_id": ids.of("conversation_id", who)})),
        Row::of("POST /api/spaces/{space_id}/memories/prune", managers(200))
            .body(|_, _| json!({"keep": 0})),
        Row::of("GET /api/spaces/{space_id}/memories/export", members(200)),
        Row::of("POST /api/spaces/{space_id}/memories/import", managers(415)),
        Row::of("GET /api/spaces/{space_id}/memories/state", inside(200)),
        // There is no such provider.
        Row::of(
            "POST /api/spaces/{space_id}/memories/test_embedding",
            managers(422),
        )
        .body(|_, _| json!({"provider_id": 999_999, "model": "m"})),
        // The run of the space has sent nothing.
        Row::of("GET /api/runs/{run_id}/memories", inside(404)),
    ]
}
