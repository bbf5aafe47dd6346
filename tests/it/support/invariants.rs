//! The invariants of scheduling as SQL queries: each row of a result is a violation.
//!
//! `at_any_instant` may be called while runs execute, because each invariant is one statement and
//! so sees one snapshot. `at_rest` holds when nothing is queued or running. `event_invariants.rs`
//! checks what a client received.

use crate::support::database_facts::{DatabaseFacts, word};

/// An invariant and the statement that finds its violations: one text column, a row for each.
#[derive(Clone)]
struct Invariant {
    name: &'static str,
    violations_sql: String,
}

/// Returns the violations of invariants that hold at every instant.
pub async fn at_any_instant(facts: &mut DatabaseFacts) -> Vec<String> {
    let invariants = [
        one_of_each(facts),
        runs_are_whole(facts),
        rounds_move_on(facts),
        cursors(facts),
        texts(facts),
        numbers(facts),
        newest(facts),
    ]
    .concat();
    violations(facts, invariants).await
}

/// Returns the violations of invariants that hold when the scheduler has nothing left to do.
pub async fn at_rest(facts: &mut DatabaseFacts) -> Vec<String> {
    let mut found = at_any_instant(facts).await;
    let unfinished = Invariant {
        name: "I8: at rest no run is queued or running",
        violations_sql: format!(
            "SELECT {} || ' ' || status FROM conversation_runs WHERE status IN ('queued', 'running')",
            facts.hex("id")
        ),
    };
    found.extend(violations(facts, vec![unfinished]).await);
    found
}

async fn violations(facts: &mut DatabaseFacts, invariants: Vec<Invariant>) -> Vec<String> {
    let mut found = Vec::new();
    for invariant in invariants {
        let rows = facts.rows(&invariant.violations_sql).await;
        found.extend(
            rows.iter()
                .map(|row| format!("{}, but: {}", invariant.name, word(&row[0]))),
        );
    }
    found
}

/// A conversation has at most one running run, one queued run and one active round.
fn one_of_each(facts: &DatabaseFacts) -> Vec<Invariant> {
    let conversation = facts.text("conversation_id");
    let runs = |status: &str| {
        format!(
            "SELECT 'conversation ' || {conversation} FROM conversation_runs WHERE status = '{status}' GROUP BY conversation_id HAVING count(*) > 1"
        )
    };
    vec![
        Invariant {
            name: "I1: a conversation has at most one running run",
            violations_sql: runs("running"),
        },
        Invariant {
            name: "I1: a conversation has at most one queued run",
            violations_sql: runs("queued"),
        },
        Invariant {
            name: "I1: a conversation has at most one active round",
            violations_sql: format!(
                "SELECT 'conversation ' || {conversation} FROM conversation_rounds WHERE status = 'active' GROUP BY conversation_id HAVING count(*) > 1"
            ),
        },
    ]
}

/// A running run has an owner, a lease and a cutoff, and an ended run has an end time.
fn runs_are_whole(facts: &DatabaseFacts) -> Vec<Invariant> {
    let run = facts.hex("id");
    vec![
        Invariant {
            name: "S14: a canceled run has a reason, and the message that superseded it, unless that is a whisper to others",
            violations_sql: format!(
                "SELECT {run} FROM conversation_runs WHERE (status = 'canceled') <> (canceled_because IS NOT NULL) OR (superseded_by_message_id IS NOT NULL AND COALESCE(canceled_because <> 'superseded_by_message', TRUE)) \
                 OR (canceled_because = 'superseded_by_message' AND superseded_by_message_id IS NULL AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.conversation_id = conversation_runs.conversation_id AND m.audience IS NOT NULL)) \
                 OR (audience IS NULL AND EXISTS (SELECT 1 FROM messages m WHERE m.id = superseded_by_message_id AND m.audience IS NOT NULL))"
            ),
        },
        Invariant {
            name: "S13: a running run has an owner, a lease, a heartbeat and a cutoff",
            violations_sql: format!(
                "SELECT {run} FROM conversation_runs WHERE status = 'running' AND (worker_id IS NULL OR lease < 1 OR heartbeat_at IS NULL OR started_at IS NULL OR cutoff_seq IS NULL)"
            ),
        },
        Invariant {
            name: "S3: an ended run has an end, a failed one a reason",
            violations_sql: format!(
                "SELECT {run} || ' ' || status FROM conversation_runs WHERE (status IN ('succeeded', 'failed', 'canceled', 'skipped') AND finished_at IS NULL) OR (status = 'failed' AND error IS NULL)"
            ),
        },
    ]
}

/// A generating round has an unfinished run; a paused or failed round has no queued run, and a waiting one
/// has a turn and no run of it.
fn rounds_move_on(facts: &DatabaseFacts) -> Vec<Invariant> {
    let round = facts.hex("r.id");
    vec![
        Invariant {
            name: "I2: an active, generating round has a queued or running run",
            violations_sql: format!(
                "SELECT {round} FROM conversation_rounds r WHERE r.status = 'active' AND r.state = 'generating' AND NOT EXISTS (SELECT 1 FROM conversation_runs x WHERE x.conversation_id = r.conversation_id AND x.status IN ('queued', 'running'))"
            ),
        },
        Invariant {
            name: "I3: a paused or failed round has no queued run",
            violations_sql: format!(
                "SELECT {round} FROM conversation_rounds r WHERE r.status = 'active' AND r.state IN ('paused', 'failed') AND EXISTS (SELECT 1 FROM conversation_runs x WHERE x.round_id = r.id AND x.status = 'queued')"
            ),
        },
        Invariant {
            name: "S16: a waiting round has the start of a turn and no run, and no other round has a deadline",
            violations_sql: format!(
                "SELECT {round} FROM conversation_rounds r WHERE r.status = 'active' AND ((r.state = 'waiting') <> (r.turn_started_at IS NOT NULL) OR (r.state <> 'waiting' AND r.deadline_at IS NOT NULL) OR (r.state = 'waiting' AND EXISTS (SELECT 1 FROM conversation_runs x WHERE x.round_id = r.id AND x.status IN ('queued', 'running') AND x.slot_position = r.cursor)))"
            ),
        },
    ]
}

/// Slots before the cursor are finished; slots after it are pending.
fn cursors(facts: &DatabaseFacts) -> Vec<Invariant> {
    let (position, status) = (
        "CAST(s.value ->> 'position' AS BIGINT)",
        "s.value ->> 'status'",
    );
    let slot = format!(
        "{} || ' slot ' || {} || ' ' || ({status})",
        facts.hex("r.id"),
        facts.text(position)
    );
    vec![Invariant {
        name: "I4: slots before the cursor are spoken or skipped, slots after it are pending",
        violations_sql: format!(
            "SELECT {slot} FROM conversation_rounds r, {} \
             WHERE ({position} < r.cursor AND ({status}) NOT IN ('spoken', 'skipped')) OR ({position} > r.cursor AND ({status}) <> 'pending')",
            facts.slots()
        ),
    }]
}

/// A run has exactly one text if it succeeded. Cloned messages of a branch are not counted.
fn texts(facts: &DatabaseFacts) -> Vec<Invariant> {
    let run = facts.hex("r.id");
    let by_run = facts.hex("m.conversation_run_id");
    // Cloned messages keep the run of their origin, which belongs to another conversation.
    let message = "SELECT 1 FROM messages m WHERE m.conversation_run_id = r.id AND m.conversation_id = r.conversation_id";
    let swipe = "SELECT 1 FROM message_swipes w JOIN messages m ON m.id = w.message_id WHERE w.conversation_run_id = r.id AND m.conversation_id = r.conversation_id";
    vec![
        Invariant {
            name: "C1: a run gives at most one message",
            violations_sql: format!(
                "SELECT {by_run} FROM messages m WHERE m.conversation_run_id IS NOT NULL AND m.origin_message_id IS NULL GROUP BY m.conversation_run_id HAVING count(*) > 1"
            ),
        },
        Invariant {
            name: "C1: a run gives at most one swipe",
            violations_sql: format!(
                "SELECT {} FROM message_swipes w JOIN messages m ON m.id = w.message_id JOIN conversation_runs r ON r.id = w.conversation_run_id WHERE m.conversation_id = r.conversation_id GROUP BY w.conversation_run_id HAVING count(*) > 1",
                facts.hex("w.conversation_run_id")
            ),
        },
        Invariant {
            name: "C2: a run that succeeded has its text",
            violations_sql: format!(
                "SELECT {run} || ' ' || r.kind FROM conversation_runs r WHERE r.status = 'succeeded' AND NOT EXISTS ({message}) AND NOT EXISTS ({swipe})"
            ),
        },
        Invariant {
            name: "C2: a run that did not succeed has no text, unless a stop kept it",
            violations_sql: format!(
                "SELECT {run} || ' ' || r.status FROM conversation_runs r WHERE r.status NOT IN ('succeeded', 'canceled') AND (EXISTS ({message}) OR EXISTS ({swipe}))"
            ),
        },
        Invariant {
            name: "I11: the text of a canceled run is kept only by a stop that asked for it",
            violations_sql: format!(
                "SELECT {run} FROM conversation_runs r JOIN messages m ON m.conversation_run_id = r.id WHERE r.status = 'canceled' AND m.origin_message_id IS NULL AND CAST(m.metadata AS TEXT) NOT LIKE '%\"stopped\"%' \
                 AND NOT EXISTS (SELECT 1 FROM message_swipes w WHERE w.message_id = m.id AND w.conversation_run_id = r.id AND CAST(w.metadata AS TEXT) LIKE '%\"stopped\"%')"
            ),
        },
        Invariant {
            name: "I5: a regenerate or continue gives no message, only a text of its target",
            violations_sql: format!(
                "SELECT {run} FROM conversation_runs r WHERE r.kind IN ('regenerate', 'continue') AND EXISTS ({message})"
            ),
        },
        Invariant {
            name: "I5: what a message shows is its text at the active position",
            violations_sql: format!(
                "SELECT 'message ' || {} FROM messages m WHERE EXISTS (SELECT 1 FROM message_swipes w WHERE w.message_id = m.id) AND NOT EXISTS (SELECT 1 FROM message_swipes w WHERE w.message_id = m.id AND w.position = m.active_swipe AND w.content = m.content)",
                facts.text("m.id")
            ),
        },
    ]
}

/// The stored columns about the newest messages match the messages.
fn newest(facts: &DatabaseFacts) -> Vec<Invariant> {
    // The schedule reads past whispers to people alone.
    let visible = "FROM messages m WHERE m.conversation_id = c.id AND m.visibility <> 'hidden' AND NOT m.is_ooc AND NOT m.is_for_people";
    vec![Invariant {
        name: "L22: the stored newest messages of a conversation are those that a search finds",
        violations_sql: format!(
            "SELECT 'conversation ' || {} FROM conversations c WHERE \
             c.last_assistant_seq IS DISTINCT FROM (SELECT max(m.seq) {visible} AND m.role = 'assistant') \
             OR c.last_user_seq IS DISTINCT FROM (SELECT max(m.seq) {visible} AND m.role = 'user') \
             OR c.last_speaker_membership_id IS DISTINCT FROM (SELECT m.space_membership_id {visible} AND m.seq = c.last_assistant_seq)",
            facts.text("c.id")
        ),
    }]
}

/// `seq` is 1, 2, 3 … without gaps; a branch may have gaps.
fn numbers(facts: &DatabaseFacts) -> Vec<Invariant> {
    let name = format!(
        "'conversation ' || {} || ': ' || {} || ' messages up to ' || {}",
        facts.text("c.id"),
        facts.text("count(*)"),
        facts.text("max(m.seq)")
    );
    vec![
        Invariant {
            name: "T1: seq is 1..n without gaps",
            violations_sql: format!(
                "SELECT {name} FROM messages m JOIN conversations c ON c.id = m.conversation_id WHERE c.kind <> 'branch' GROUP BY c.id HAVING count(*) <> max(m.seq) OR min(m.seq) <> 1 OR count(DISTINCT m.seq) <> count(*)"
            ),
        },
        Invariant {
            name: "I7: no message is newer than its conversation",
            violations_sql: format!(
                "SELECT 'message ' || {} FROM messages m JOIN conversations c ON c.id = m.conversation_id WHERE m.rev > c.rev",
                facts.text("m.id")
            ),
        },
    ]
}
