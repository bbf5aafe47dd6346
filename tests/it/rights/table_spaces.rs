//! The rows of the grid for a space and its resources.

use serde_json::json;

use crate::rights::roles::Role;
use crate::rights::table::{
    Row, Setup, inside, managers, members, one_owner, open, owners, signed_in, with_membership,
};

pub fn spaces() -> Vec<Row> {
    vec![
        Row::of("GET /api/spaces", signed_in(200)),
        Row::of("POST /api/spaces", signed_in(201)).body(|_, _| json!({"name": "Mine"})),
        // The grid sends JSON, but this endpoint accepts a form.
        Row::of("POST /api/spaces/import", signed_in(415)),
        Row::of("GET /api/spaces/{space_id}/export", managers(200)),
        Row::of("GET /api/spaces/{space_id}", inside(200)),
        Row::of("PATCH /api/spaces/{space_id}", managers(200))
            .case("its settings")
            .body(|_, _| json!({"description": "Another."})),
        Row::of("PATCH /api/spaces/{space_id}", owners(200))
            .case("archiving it")
            .body(|_, _| json!({"status": "archived"}))
            .with_space_per_role(),
        Row::of("DELETE /api/spaces/{space_id}", owners(204)),
    ]
}

pub fn memberships() -> Vec<Row> {
    const ONE: &str = "PATCH /api/memberships/{membership_id}";
    const GO: &str = "DELETE /api/memberships/{membership_id}";
    const NEW: &str = "POST /api/spaces/{space_id}/memberships";
    vec![
        Row::of("GET /api/spaces/{space_id}/memberships", inside(200)),
        // A character is added by its owner; users without a common space cannot see it.
        Row::of(NEW, [401, 404, 403, 403, 404, 201, 201, 404, 404])
            .case("a character")
            .body(|ids, who| json!({"character_id": ids.of("character_id:spare", who)}))
            .with_space_per_role(),
        Row::of(NEW, managers(202))
            .case("a user without a common space")
            .body(|ids, who| json!({"user_id": ids.of("user_id", who), "role": "guest"})),
        Row::of(NEW, managers(202))
            .case("such a user as moderator")
            .body(|ids, who| json!({"user_id": ids.of("user_id", who), "role": "moderator"})),
        Row::of(ONE, with_membership(200))
            .case("one's own persona")
            .with("membership_id", "membership_id:own")
            .body(|_, _| json!({"persona": "A knight."})),
        Row::of(ONE, [401, 404, 200, 403, 403, 403, 403, 404, 404])
            .case("the guest's persona")
            .with("membership_id", "membership_id:guest")
            .body(|_, _| json!({"persona": "A knave."})),
        // The admin has no membership, so `own` is the member's, whose settings the admin may change.
        Row::of(ONE, inside(200))
            .case("one's own memory")
            .with("membership_id", "membership_id:own")
            .body(|_, _| json!({"settings": {"memory": {"learn": false, "recall": false}}})),
        Row::of(ONE, [401, 404, 200, 403, 200, 200, 200, 404, 404])
            .case("the guest's memory")
            .with("membership_id", "membership_id:guest")
            .body(|_, _| json!({"settings": {"memory": {"recall": false}}})),
        Row::of(ONE, managers(200))
            .case("the memory of a character")
            .with("membership_id", "membership_id:character")
            .body(|_, _| json!({"settings": {"memory": {"learn": false}}})),
        Row::of(ONE, managers(200))
            .case("the persona of a character")
            .with("membership_id", "membership_id:character")
            .body(|_, _| json!({"persona": "A ghost."})),
        Row::of(ONE, managers(200))
            .case("the guest's role")
            .with("membership_id", "membership_id:guest")
            .body(|_, _| json!({"role": "member"}))
            .with_space_per_role(),
        Row::of(ONE, managers(200))
            .case("the guest becomes a moderator")
            .with("membership_id", "membership_id:guest")
            .body(|_, _| json!({"role": "moderator"}))
            .with_space_per_role(),
        Row::of(ONE, owners(200))
            .case("transferring the space")
            .with("membership_id", "membership_id:moderator")
            .body(|_, _| json!({"role": "owner"}))
            .with_space_per_role(),
        Row::of(ONE, managers(200))
            .case("muting a character")
            .with("membership_id", "membership_id:character")
            .body(|_, _| json!({"participation": "muted"})),
        Row::of(ONE, managers(200))
            .case("its position")
            .with("membership_id", "membership_id:character")
            .body(|_, _| json!({"position": 0})),
        Row::of(ONE, managers(200))
            .case("its talkativeness")
            .with("membership_id", "membership_id:character")
            .body(|_, _| json!({"talkativeness": 0.1})),
        // The admin has no membership, so `own` is the member's, which the admin may remove.
        Row::of(GO, [401, 404, 204, 204, 204, 409, 204, 404, 404])
            .case("leaving")
            .with("membership_id", "membership_id:own"),
        Row::of(GO, [401, 404, 204, 403, 204, 204, 204, 404, 404])
            .case("removing the guest")
            .with("membership_id", "membership_id:guest"),
        Row::of(GO, [401, 404, 403, 403, 403, 409, 409, 404, 404])
            .case("removing the owner")
            .with("membership_id", "membership_id:owner"),
        Row::of(GO, managers(204))
            .case("removing a character")
            .with("membership_id", "membership_id:character"),
    ]
}

pub fn invites() -> Vec<Row> {
    const NEW: &str = "POST /api/spaces/{space_id}/invites";
    vec![
        Row::of("GET /api/spaces/{space_id}/invites", managers(200)),
        Row::of(NEW, managers(201))
            .case("for guests")
            .body(|_, _| json!({"role": "guest"})),
        Row::of(NEW, managers(201))
            .case("for moderators")
            .body(|_, _| json!({"role": "moderator"})),
        Row::of("DELETE /api/invites/{invite_id}", managers(204)),
        Row::of("GET /api/spaces/{space_id}/invitations", managers(200)),
        Row::of("DELETE /api/invitations/{invitation_id}", managers(204)),
        Row::of("GET /api/invitations", signed_in(200)),
        // The outsider is invited; for anyone else this invitation does not exist.
        Row::of(
            "POST /api/invitations/{invitation_id}/decline",
            [401, 204, 404, 404, 404, 404, 404, 404, 404],
        ),
        Row::of(
            "POST /api/invitations/{invitation_id}/accept",
            [401, 200, 404, 404, 404, 404, 404, 404, 404],
        ),
        // Every holder of the link may read the preview and join.
        Row::of("GET /api/join/{token}", open(200)),
        Row::of(
            "POST /api/join/{token}",
            [201, 201, 200, 200, 200, 200, 201, 201, 201],
        )
        .body(|_, who| match who {
            Role::SignedOut => json!({"display_name": "Wanda"}),
            _ => json!({}),
        }),
    ]
}

pub fn conversations() -> Vec<Row> {
    const SECOND: &str = "conversation_id:second";
    vec![
        Row::of("GET /api/spaces/{space_id}/conversations", inside(200)),
        Row::of("POST /api/spaces/{space_id}/conversations", members(201))
            .body(|_, _| json!({"title": "Third"})),
        Row::of("GET /api/conversations/{conversation_id}", inside(200)),
        Row::of("PATCH /api/conversations/{conversation_id}", members(200))
            .body(|_, _| json!({"title": "Renamed"})),
        Row::of("DELETE /api/conversations/{conversation_id}", managers(204))
            .with("conversation_id", SECOND),
        Row::of("DELETE /api/conversations/{conversation_id}", managers(409))
            .case("the root conversation"),
        Row::of(
            "POST /api/conversations/{conversation_id}/read",
            inside(204),
        )
        .body(|_, _| json!({"seq": 1})),
        Row::of(
            "POST /api/conversations/{conversation_id}/generate",
            members(202),
        ),
        Row::of(
            "POST /api/conversations/{conversation_id}/regenerate",
            members(202),
        )
        .with("conversation_id", SECOND),
        Row::of(
            "POST /api/conversations/{conversation_id}/continue",
            members(202),
        )
        .with("conversation_id", SECOND),
        Row::of(
            "POST /api/conversations/{conversation_id}/branch",
            members(201),
        )
        .with("conversation_id", SECOND)
        .body(|ids, who| json!({"message_id": ids.of("message_id:ai", who)})),
        Row::of(
            "POST /api/conversations/{conversation_id}/stop",
            members(202),
        )
        .with_space_per_role(),
        Row::of(
            "POST /api/conversations/{conversation_id}/pause",
            members(200),
        )
        .with_space_per_role(),
        Row::of(
            "POST /api/conversations/{conversation_id}/resume",
            members(409),
        ),
        Row::of(
            "POST /api/conversations/{conversation_id}/skip",
            members(200),
        )
        .with_space_per_role(),
        Row::of(
            "POST /api/conversations/{conversation_id}/retry",
            members(409),
        ),
        Row::of(
            "PATCH /api/conversations/{conversation_id}/round",
            members(200),
        )
        .body(|ids, who| {
            let membership = ids.of("membership_id:character", who);
            json!({"round_id": ids.of("round_id", who), "slots": [membership, membership]})
        }),
        Row::of(
            "GET /api/conversations/{conversation_id}/prompt",
            members(200),
        ),
        Row::of(
            "POST /api/conversations/{conversation_id}/copilot_candidates",
            [401, 404, 403, 202, 202, 202, 403, 404, 404],
        )
        .case("for oneself")
        .body(|ids, who| json!({"membership_id": ids.of("membership_id:own", who), "count": 1})),
        Row::of(
            "POST /api/conversations/{conversation_id}/copilot_candidates",
            [401, 404, 403, 403, 403, 202, 403, 404, 404],
        )
        .case("for the owner")
        .body(|ids, who| json!({"membership_id": ids.of("membership_id:owner", who), "count": 1})),
        Row::of(
            "GET /api/conversations/{conversation_id}/export",
            members(200),
        ),
        // The grid sends JSON, but this endpoint accepts a form.
        Row::of("POST /api/spaces/{space_id}/import", members(415)),
        Row::of("POST /api/spaces/{space_id}/import/preview", members(415)),
        // The owner started the import, and it has ended.
        Row::of("GET /api/imports/{import_id}", one_owner(200)),
        Row::of("DELETE /api/imports/{import_id}", one_owner(409)),
        Row::of("GET /api/jobs", signed_in(200)),
        Row::of("GET /api/jobs/{job_id}", one_owner(200)),
        Row::of("DELETE /api/jobs/{job_id}", one_owner(409)),
        Row::of("GET /api/conversations/{conversation_id}/runs", inside(200)),
        Row::of(
            "GET /api/conversations/{conversation_id}/next_speaker",
            inside(200),
        ),
        Row::of(
            "GET /api/conversations/{conversation_id}/tool_approvals",
            inside(200),
        ),
        // Without workers, no run waits for an approval.
        Row::of("POST /api/tool_approvals/{tool_approval_id}", managers(409))
            .body(|_, _| json!({"approve": true})),
        Row::of("GET /api/runs/{run_id}", inside(200)),
        // The run of the space has sent nothing.
        Row::of("GET /api/runs/{run_id}/prompt", members(404)),
        Row::of("POST /api/runs/{run_id}/cancel", members(202)).with_space_per_role(),
    ]
}

pub fn messages() -> Vec<Row> {
    const POST: &str = "POST /api/conversations/{conversation_id}/messages";
    const ONE: &str = "PATCH /api/messages/{message_id}";
    const GO: &str = "DELETE /api/messages/{message_id}";
    const SELECT: &str = "PATCH /api/messages/{message_id}/swipe";
    const SELECT_BY_POST: &str = "POST /api/messages/{message_id}/swipes/select";
    vec![
        Row::of("GET /api/search", signed_in(200)),
        Row::of(
            "GET /api/conversations/{conversation_id}/messages",
            inside(200),
        ),
        Row::of(POST, with_membership(201))
            .case("one's own text")
            .body(|_, who: Role| json!({"content": format!("The {} again.", who.name())})),
        Row::of(POST, [401, 404, 403, 201, 201, 201, 403, 404, 404])
            .case("as the narrator")
            .body(|_, _| json!({"content": "The rain stops.", "kind": "narrator"})),
        Row::of(POST, [401, 404, 403, 403, 201, 201, 403, 404, 404])
            .case("in the name of a character")
            .body(|ids, who| {
                let speaker = ids.of("membership_id:character", who);
                json!({"content": "Welcome.", "kind": "character", "speaker_id": speaker})
            }),
        Row::of(POST, with_membership(201))
            .case("dice")
            .body(|_, _| json!({"content": "2d6+3", "kind": "roll"})),
        // The admin has no message, so this is the member's, which the admin may edit.
        Row::of(ONE, inside(200))
            .case("one's own text")
            .with("message_id", "message_id:own")
            .before(Setup::Speaks)
            .body(|_, _| json!({"content": "Said better.", "expected_version": 1})),
        Row::of(ONE, managers(200))
            .case("the owner's text")
            .with("message_id", "message_id:owner")
            .body(|_, _| json!({"content": "Put into your mouth.", "expected_version": 1}))
            .with_space_per_role(),
        Row::of(ONE, managers(200))
            .case("an AI's text")
            .with("message_id", "message_id:ai")
            .body(|_, _| json!({"content": "Go away.", "expected_version": 1}))
            .with_space_per_role(),
        // The admin has no message, so this is the member's, which the admin may hide.
        Row::of(ONE, inside(200))
            .case("excluding one's own")
            .with("message_id", "message_id:own")
            .body(|_, _| json!({"visibility": "excluded"})),
        Row::of(ONE, managers(200))
            .case("excluding the owner's")
            .with("message_id", "message_id:owner")
            .body(|_, _| json!({"visibility": "excluded"})),
        Row::of(ONE, inside(200))
            .case("the memory of one's own message")
            .with("message_id", "message_id:own")
            .body(|_, _| json!({"remember": false})),
        Row::of(ONE, managers(200))
            .case("the memory of the owner's message")
            .with("message_id", "message_id:owner")
            .body(|_, _| json!({"remember": false})),
        Row::of(ONE, managers(200))
            .case("the memory of an AI's message")
            .with("message_id", "message_id:ai")
            .body(|_, _| json!({"remember": false})),
        Row::of(ONE, inside(200))
            .case("the mark of one's own message")
            .with("message_id", "message_id:own")
            .body(|_, _| json!({"is_ooc": true})),
        Row::of(ONE, managers(200))
            .case("the mark of the owner's message")
            .with("message_id", "message_id:owner")
            .body(|_, _| json!({"is_ooc": true})),
        Row::of(GO, inside(204))
            .case("one's own")
            .with("message_id", "message_id:own"),
        Row::of(GO, managers(204))
            .case("the owner's")
            .with("message_id", "message_id:owner"),
        Row::of(GO, managers(204))
            .case("an AI's")
            .with("message_id", "message_id:ai"),
        Row::of("GET /api/messages/{message_id}/swipes", inside(200)),
        Row::of(
            "GET /api/conversations/{conversation_id}/bookmarks",
            inside(200),
        ),
        Row::of("PUT /api/messages/{message_id}/bookmark", inside(204))
            .with("message_id", "message_id:owner"),
        Row::of("DELETE /api/messages/{message_id}/bookmark", inside(204))
            .with("message_id", "message_id:owner"),
        Row::of(
            "PUT /api/messages/{message_id}/reactions/{emoji}",
            with_membership(204),
        )
        .with("message_id", "message_id:owner"),
        Row::of(
            "DELETE /api/messages/{message_id}/reactions/{emoji}",
            with_membership(204),
        )
        .with("message_id", "message_id:owner"),
        // The grid sends JSON, but this endpoint accepts a form.
        Row::of("POST /api/attachments", signed_in(415)),
        // A picture of the member's message.
        Row::of("GET /api/attachments/{attachment_id}", inside(200)),
        Row::of("PATCH /api/attachments/{attachment_id}", members(200))
            .body(|_, _| json!({"alt": "A cat."})),
        Row::of("DELETE /api/attachments/{attachment_id}", members(204)).with_space_per_role(),
        // The fixture stores a translation, because there is no model that translates.
        Row::of("GET /api/messages/{message_id}/translation", inside(200))
            .with("message_id", "message_id:translated"),
        Row::of("GET /api/messages/{message_id}/revisions", managers(200)),
        // The admin posts nothing, so this is the member's message.
        Row::of(SELECT, inside(200))
            .case("of one's own")
            .with("message_id", "message_id:own")
            .before(Setup::Speaks)
            .body(|_, _| json!({"position": 0})),
        Row::of(SELECT, members(200))
            .case("of an AI's")
            .with("message_id", "message_id:ai")
            .body(|_, _| json!({"position": 0})),
        Row::of(SELECT_BY_POST, members(200))
            .with("message_id", "message_id:ai")
            .body(|_, _| json!({"position": 0})),
    ]
}
