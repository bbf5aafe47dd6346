//! Creates the spaces of the chaos run, with settings of every kind, and their users.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::settings::N_NODES;
use crate::support::http_client::{HttpClient, expect, id, root_of, token_of};

/// The number of spaces, apart from the one with all users.
const N_SPACES: usize = 15;
/// In how many of them each person sits.
const N_SEATS: usize = 3;

/// A conversation, as its people know it.
#[derive(Clone, Debug)]
pub struct SpaceConversation {
    pub conversation: i64,
    /// As whom one sits there.
    pub seat: i64,
    /// A message asks for an answer.
    pub asks: bool,
    /// A user created it during the faults.
    pub is_branch: bool,
}

/// One of the people.
#[derive(Clone, Debug)]
pub struct SignedInUser {
    pub index: usize,
    pub cookie: String,
    pub conversations: Vec<SpaceConversation>,
}

/// What was furnished.
pub struct Population {
    pub users: Vec<SignedInUser>,
    /// They will sit there and never say a word.
    pub silent_users: Vec<SignedInUser>,
}

/// Creates all users and spaces on one node before the faults begin.
pub async fn create_spaces(base: &str, n_guests: usize, seed: u64) -> Population {
    let owner = HttpClient::set_up(base, "ann").await;
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let mut cast = Vec::new();
    for name in ["Ada", "Bob", "Cleo"] {
        cast.push(owner.create_character(name, None).await);
    }
    let mut doors = Vec::new();
    for n in 0..=N_SPACES {
        let space = space(&owner, n).await;
        for character in &cast {
            owner.add_character(&space, character).await;
        }
        let invite = owner.invite(id(&space), json!({"role": "member"})).await;
        let room = SpaceConversation {
            conversation: root_of(&space),
            seat: 0,
            asks: space["reply_order"] != "manual",
            is_branch: false,
        };
        doors.push((token_of(&invite).to_owned(), room));
    }
    let mut guests = Vec::new();
    for index in 0..n_guests {
        let mut chosen: Vec<usize> = (1..=N_SPACES).collect();
        while chosen.len() > N_SEATS {
            chosen.swap_remove(dice.random_range(0..chosen.len()));
        }
        // Some of them meet in the first one, the hot one.
        if index % 3 == 0 {
            chosen.push(0);
        }
        guests.push(guest(base, index, &doors, &chosen).await);
    }
    let mut ghosts = Vec::new();
    for n in 0..N_NODES {
        ghosts.push(guest(base, n_guests + n, &doors, &[0]).await);
    }
    Population {
        users: guests,
        silent_users: ghosts,
    }
}

async fn guest(
    base: &str,
    index: usize,
    doors: &[(String, SpaceConversation)],
    chosen: &[usize],
) -> SignedInUser {
    let person = HttpClient::register(base, &name(index)).await;
    let mut rooms = Vec::new();
    for at in chosen {
        let (token, room) = &doors[*at];
        let (status, answer) = person.join(token).await;
        assert!(status < 300, "{answer}");
        rooms.push(SpaceConversation {
            seat: id(&answer["membership"]),
            ..room.clone()
        });
    }
    SignedInUser {
        index,
        cookie: person.cookie().to_owned(),
        conversations: rooms,
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

/// The n-th space: every policy meets every order, and some let several speak.
async fn space(owner: &HttpClient, n: usize) -> Value {
    let policies = ["queue", "restart", "reject"];
    let orders = ["natural", "list", "pooled", "natural", "manual"];
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
    expect(201, owner.post("/api/spaces", body).await)
}
