//! Everybody there is, as far as rights go.

use crate::support::app::TestApp;
use crate::support::person::Person;
use serde_json::Value;

/// How somebody stands to the space of a stage, in the order of the table's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Not signed in.
    Nobody,
    /// Has an account, and no seat anywhere.
    Outsider,
    Guest,
    Member,
    Moderator,
    Owner,
    /// Runs the server, and has no seat.
    Admin,
    /// Was a member until removed.
    Removed,
    /// Owns another space.
    Elsewhere,
}

impl Who {
    pub const ALL: [Who; 9] = [
        Who::Nobody,
        Who::Outsider,
        Who::Guest,
        Who::Member,
        Who::Moderator,
        Who::Owner,
        Who::Admin,
        Who::Removed,
        Who::Elsewhere,
    ];

    /// The name of the account.
    pub fn name(self) -> &'static str {
        match self {
            Who::Nobody => "nobody",
            Who::Outsider => "outsider",
            Who::Guest => "guest",
            Who::Member => "member",
            Who::Moderator => "moderator",
            Who::Owner => "owner",
            Who::Admin => "admin",
            Who::Removed => "removed",
            Who::Elsewhere => "elsewhere",
        }
    }

    /// Whether they have a seat on a stage.
    pub fn is_seated(self) -> bool {
        matches!(self, Who::Guest | Who::Member | Who::Moderator | Who::Owner)
    }
}

/// A server and everybody's browser.
pub struct Cast {
    pub house: TestApp,
    people: Vec<Person>,
    ids: Vec<i64>,
}

impl Cast {
    /// Signs everybody in at a server on which nobody works: what is queued stays queued.
    pub async fn at(house: TestApp) -> Cast {
        let base = house.base.clone();
        let mut people = Vec::new();
        let mut ids = Vec::new();
        let admin = Person::set_up(&base, Who::Admin.name()).await;
        for who in Who::ALL {
            let person = match who {
                Who::Nobody => Person::at(&base),
                Who::Admin => admin.clone(),
                other => Person::register(&base, other.name()).await,
            };
            let (_, session) = person.get("/api/session").await;
            ids.push(session["user"]["id"].as_i64().unwrap_or_default());
            people.push(person);
        }
        Cast { house, people, ids }
    }

    pub fn person(&self, who: Who) -> &Person {
        &self.people[who as usize]
    }

    pub fn user_id(&self, who: Who) -> Value {
        self.ids[who as usize].into()
    }
}
