//! Creates the spaces of the chaos run, with settings of every kind, and their users.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::settings::N_NODES;
use crate::support::http_client::{HttpClient, expect, id, root_of, token_of};

/// The number of spaces, apart from the one with all users.
const N_SPACES: usize = 19;
/// The spaces in which people take turns, and how many seconds a turn lasts: three orders and three
/// policies, one with auto mode. Users that wait for a node notice a short turn late.
const WITH_TURNS: [(usize, i64); 4] = [(6, 3), (10, 6), (11, 6), (12, 6)];
/// The number of these spaces that each user joins.
const N_MEMBERSHIPS: usize = 3;

/// A conversation as its users see it.
#[derive(Clone, Debug)]
pub struct SpaceConversation {
    pub space: i64,
    pub conversation: i64,
    /// The membership of the user.
    pub membership: i64,
    /// The memberships of the characters, and of the other users.
    pub characters: Vec<i64>,
    pub others: Vec<i64>,
    pub takes_turns: bool,
    /// A message must get a reply.
    pub expects_reply: bool,
    /// A user created it during the faults.
    pub is_branch: bool,
}

/// A user with a session.
#[derive(Clone, Debug)]
pub struct SignedInUser {
    pub index: usize,
    pub cookie: String,
    pub conversations: Vec<SpaceConversation>,
}

/// The users that were created.
pub struct Population {
    pub users: Vec<SignedInUser>,
    /// Users for the clients that stop sending frames.
    pub silent_users: Vec<SignedInUser>,
}

/// Creates all users and spaces on one node before the faults begin.
pub async fn create_spaces(base: &str, n_guests: usize, seed: u64) -> Population {
    let owner = HttpClient::set_up(base, "ann").await;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut characters = Vec::new();
    for name in ["Ada", "Bob", "Cleo"] {
        characters.push(owner.create_character(name, None).await);
    }
    let mut invites = Vec::new();
    for n in 0..=N_SPACES {
        let space = space(&owner, n).await;
        let mut members = Vec::new();
        for character in &characters {
            members.push(id(&owner.add_character(&space, character).await));
        }
        let invite = owner.invite(id(&space), json!({"role": "member"})).await;
        let space_conversation = SpaceConversation {
            space: id(&space),
            conversation: root_of(&space),
            membership: 0,
            characters: members,
            others: Vec::new(),
            takes_turns: space["humans_take_turns"] == true,
            // Where people take turns, a message may leave the present round as it is.
            expects_reply: space["reply_order"] != "manual" && space["humans_take_turns"] == false,
            is_branch: false,
        };
        invites.push((token_of(&invite).to_owned(), space_conversation));
    }
    let mut guests = Vec::new();
    for index in 0..n_guests {
        let mut chosen: Vec<usize> = (1..=N_SPACES).collect();
        while chosen.len() > N_MEMBERSHIPS {
            chosen.swap_remove(rng.random_range(0..chosen.len()));
        }
        // A third of them join the first space, which has the most users.
        if index % 3 == 0 {
            chosen.push(0);
        }
        guests.push(guest(base, index, &invites, &chosen).await);
    }
    introduce(&mut guests);
    let mut silent_users = Vec::new();
    for n in 0..N_NODES {
        silent_users.push(guest(base, n_guests + n, &invites, &[0]).await);
    }
    Population {
        users: guests,
        silent_users,
    }
}

/// Adds to each user's spaces the other users in them.
fn introduce(guests: &mut [SignedInUser]) {
    let all = guests.iter().flat_map(|it| &it.conversations);
    let all: Vec<(i64, i64)> = all.map(|it| (it.space, it.membership)).collect();
    for own in guests.iter_mut().flat_map(|it| &mut it.conversations) {
        let others = all
            .iter()
            .filter(|it| it.0 == own.space && it.1 != own.membership);
        own.others = others.map(|it| it.1).collect();
    }
}

async fn guest(
    base: &str,
    index: usize,
    invites: &[(String, SpaceConversation)],
    chosen: &[usize],
) -> SignedInUser {
    let user = HttpClient::register(base, &name(index)).await;
    let mut space_conversations = Vec::new();
    for at in chosen {
        let (token, space_conversation) = &invites[*at];
        let (status, answer) = user.join(token).await;
        assert!(status < 300, "{answer}");
        space_conversations.push(SpaceConversation {
            membership: id(&answer["membership"]),
            ..space_conversation.clone()
        });
    }
    SignedInUser {
        index,
        cookie: user.cookie().to_owned(),
        conversations: space_conversations,
    }
}

/// Names that the similarity check accepts next to each other.
fn name(index: usize) -> String {
    let parts = ["Ba", "Ce", "Di", "Fo", "Gu", "Ka", "Le", "Mi", "No", "Pu"];
    let (first, second) = (parts[index / 10 % 10], parts[index % 10]);
    format!(
        "{first}{}{}",
        second.to_lowercase(),
        "x".repeat(index / 100)
    )
}

/// Creates the n-th space: every policy is combined with every order, some spaces let several
/// characters speak, and in some people take turns.
async fn space(owner: &HttpClient, n: usize) -> Value {
    let policies = ["queue", "restart", "reject"];
    let orders = ["natural", "list", "pooled", "director", "manual"];
    let debounces = [0, 150, 400];
    let mut body = json!({
        "name": format!("Room {n}"),
        "during_generation_user_input_policy": policies[n % 3],
        "reply_order": orders[n % 5],
        "user_turn_debounce_ms": debounces[n / 3 % 3],
    });
    if n % 5 == 1 {
        body["group_regenerate_mode"] = json!("last_turn");
    }
    if n % 4 == 2 {
        body["replies_per_turn"] = json!("activated");
    }
    if n % 4 == 3 && body["reply_order"] != "manual" {
        body["auto_mode_enabled"] = json!(true);
        body["auto_mode_max_turns"] = json!(4);
        body["auto_mode_delay_ms"] = json!(300);
    }
    let turns = WITH_TURNS.iter().find(|it| it.0 == n);
    if let Some((_, timeout_s)) = turns {
        body["humans_take_turns"] = json!(true);
        body["human_turn_timeout_s"] = json!(timeout_s);
    }
    expect(201, owner.post("/api/spaces", body).await)
}
