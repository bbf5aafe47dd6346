//! The bulkhead: so many responses at once on this node, and of them a share for one person. Rooms
//! have places of their own, so that programs cannot starve them.

use crate::ids::UserId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// The places of this node. Cloning gives another handle on the same ones.
#[derive(Clone)]
pub struct Places {
    most: usize,
    share: usize,
    taken: Arc<Mutex<HashMap<UserId, usize>>>,
}

/// One place; free again when this goes.
pub struct Place {
    user: UserId,
    taken: Arc<Mutex<HashMap<UserId, usize>>>,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// All are taken.
    House,
    /// This person has their share.
    Share,
}

impl Places {
    /// So many, of which one person gets a quarter, and at least one.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            share: most.div_ceil(4),
            taken: Arc::default(),
        }
    }

    /// Takes a place.
    ///
    /// # Errors
    /// There is none, or none for this person.
    pub fn take(&self, user: UserId) -> Result<Place, Full> {
        let mut taken = self.taken.lock();
        if taken.values().sum::<usize>() >= self.most {
            return Err(Full::House);
        }
        let own = taken.entry(user).or_default();
        if *own >= self.share {
            return Err(Full::Share);
        }
        *own += 1;
        Ok(Place {
            user,
            taken: self.taken.clone(),
        })
    }

    /// How many this person has.
    pub fn of(&self, user: UserId) -> usize {
        self.taken.lock().get(&user).copied().unwrap_or_default()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.taken.lock();
        if let Some(own) = taken.get_mut(&self.user) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Full;
    use super::Places;
    use crate::ids::UserId;

    #[test]
    fn one_person_gets_a_quarter_and_everybody_together_all() {
        let places = Places::new(8);
        let ann: Vec<_> = (0..2).map(|_| places.take(UserId(1)).unwrap()).collect();

        assert_eq!(places.take(UserId(1)).err(), Some(Full::Share));
        let others: Vec<_> = (2..5)
            .flat_map(|it| {
                [
                    places.take(UserId(it)).unwrap(),
                    places.take(UserId(it)).unwrap(),
                ]
            })
            .collect();
        assert_eq!(places.take(UserId(9)).err(), Some(Full::House));
        drop(others);
        drop(ann);
        assert!(places.take(UserId(1)).is_ok());
        assert_eq!(places.of(UserId(1)), 0, "a place that went is free");
    }

    #[test]
    fn the_only_place_is_for_everybody() {
        assert!(Places::new(1).take(UserId(1)).is_ok());
    }
}
