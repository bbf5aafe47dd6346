//! Who of those that are due is claimed when not all of them fit. Pure.
//!
//! Every space has the same share of the places: the next one goes to the space with the fewest
//! runs under way, among equals to the one whose last turn is longest ago, then to the one that
//! waits longest. A place that nobody else wants goes to whoever does: a lone space has them all.
//!
//! A run that goes on after a question was decided comes before all that became due after that.

use crate::clock::Timestamp;
use crate::ids::ProviderId;
use crate::ids::RunId;
use crate::ids::SpaceId;
use crate::runs::due::Due;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::collections::VecDeque;

/// A run that holds a place on this node.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub run: RunId,
    pub space: SpaceId,
    pub provider: Option<ProviderId>,
}

impl Held {
    /// The place that a run will hold.
    pub fn by(due: &Due) -> Self {
        Self {
            run: due.id,
            space: due.space_id,
            provider: due.provider_id,
        }
    }
}

/// Who wants a place.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Queued runs.
    pub due: Vec<Due>,
    /// Running ones that returned their place, due since their question was decided.
    pub resumed: Vec<Due>,
}

/// Turns that are longer ago are as good as none.
const MEMORY: u64 = 4_096;

/// Who has which place of a node, and when each space had its last turn.
#[derive(Clone, Debug, Default)]
pub struct Places {
    held: Vec<Held>,
    /// How many turns there were.
    n_turns: u64,
    /// Which of them was a space's last.
    last_turns: HashMap<SpaceId, u64>,
}

impl Places {
    /// A run takes a place.
    pub fn take(&mut self, place: Held) {
        self.n_turns += 1;
        self.last_turns.insert(place.space, self.n_turns);
        if self.last_turns.len() as u64 > MEMORY {
            let forgotten = self.n_turns - MEMORY;
            self.last_turns.retain(|_, turn| *turn > forgotten);
        }
        self.held.push(place);
    }

    /// Frees the places of all runs but these.
    pub fn keep(&mut self, is_running: impl Fn(RunId) -> bool) {
        self.held.retain(|it| is_running(it.run));
    }

    /// The providers that take no more.
    pub fn full(&self, per_provider: usize) -> Vec<ProviderId> {
        let mut n_runs: HashMap<ProviderId, usize> = HashMap::new();
        for provider in self.held.iter().filter_map(|it| it.provider) {
            *n_runs.entry(provider).or_default() += 1;
        }
        n_runs.retain(|_, n| *n >= per_provider);
        n_runs.into_keys().collect()
    }

    /// Who gets the next `n_free` places, with at most `per_provider` runs at one provider.
    pub fn choose(&self, wanted: Wanted, n_free: usize, per_provider: usize) -> Vec<Due> {
        let mut then = self.clone();
        let Wanted { mut due, resumed } = wanted;
        due.extend(resumed.iter().cloned());
        let is_resumed = |it: &Due| resumed.iter().any(|resumed| resumed.id == it.id);
        let mut lines = lines(due);
        let mut chosen: Vec<Due> = Vec::new();
        while chosen.len() < n_free {
            let full = then.full(per_provider);
            let fits = |it: &Due| it.provider_id.is_none_or(|id| !full.contains(&id));
            let all = lines.values().flatten();
            let first = all.filter(|it| is_resumed(it) && fits(it));
            let first = first.map(became_due).min();
            let may = |it: &Due| {
                let in_order = first.is_none_or(|at| became_due(it) <= at);
                fits(it) && (in_order || is_resumed(it))
            };
            let next = lines
                .iter()
                .filter_map(|(space, line)| {
                    let at = line.iter().position(may)?;
                    Some((then.claim_of(*space), since(&line[at]), *space, at))
                })
                .min();
            let Some((_, _, space, at)) = next else {
                break;
            };
            let taken = lines.get_mut(&space).and_then(|line| line.remove(at));
            chosen.extend(taken.inspect(|it| then.take(Held::by(it))));
        }
        chosen
    }

    /// The less, the better: how many places a space has, and when it got the last one.
    fn claim_of(&self, space: SpaceId) -> (usize, u64) {
        let n_running = self.held.iter().filter(|it| it.space == space).count();
        let last_turn = self.last_turns.get(&space);
        (n_running, last_turn.copied().unwrap_or_default())
    }
}

/// Who waits in each space, the longest first.
fn lines(mut due: Vec<Due>) -> BTreeMap<SpaceId, VecDeque<Due>> {
    due.sort_by_key(|it| (since(it), it.conversation_id));
    let mut lines: BTreeMap<SpaceId, VecDeque<Due>> = BTreeMap::new();
    for it in due {
        lines.entry(it.space_id).or_default().push_back(it);
    }
    lines
}

/// Since when it could run.
fn since(due: &Due) -> Timestamp {
    due.run_after.unwrap_or(due.created_at)
}

/// When it became due.
fn became_due(due: &Due) -> Timestamp {
    due.run_after.unwrap_or(due.created_at)
}

#[cfg(test)]
mod tests {
    use super::Held;
    use super::MEMORY;
    use super::Places;
    use super::Wanted;
    use crate::clock::Timestamp;
    use crate::ids::ConversationId;
    use crate::ids::ProviderId;
    use crate::ids::RunId;
    use crate::ids::SpaceId;
    use crate::runs::due::Due;
    use proptest::prelude::*;

    fn due(space: i64, at: i64, provider: i64) -> Due {
        Due {
            id: RunId::new(),
            conversation_id: ConversationId(at),
            space_id: SpaceId(space),
            run_after: Some(Timestamp(at)),
            created_at: Timestamp(0),
            provider_id: (provider > 0).then_some(ProviderId(provider)),
        }
    }

    fn queued(due: Vec<Due>) -> Wanted {
        Wanted {
            due,
            resumed: Vec::new(),
        }
    }

    /// The spaces of the chosen ones, in order.
    fn spaces(chosen: &[Due]) -> Vec<i64> {
        chosen.iter().map(|it| it.space_id.0).collect()
    }

    fn places(held: &[Due]) -> Places {
        let mut places = Places::default();
        held.iter().for_each(|it| places.take(Held::by(it)));
        places
    }

    #[test]
    fn spaces_take_turns_whoever_came_first() {
        let many = (0..100).map(|at| due(1, at, 1));
        let all: Vec<Due> = many.chain([due(2, 500, 1), due(3, 600, 1)]).collect();

        let chosen = places(&[]).choose(queued(all), 5, 99);

        assert_eq!(spaces(&chosen), [1, 2, 3, 1, 1]);
        assert_eq!(
            chosen[3].run_after,
            Some(Timestamp(1)),
            "in order of waiting"
        );
    }

    #[test]
    fn who_runs_less_comes_first() {
        let held = [due(1, 0, 1), due(1, 1, 1), due(2, 2, 1)];
        let all = vec![due(1, 3, 1), due(2, 4, 1), due(2, 5, 1), due(3, 6, 1)];

        let chosen = places(&held).choose(queued(all), 3, 99);

        assert_eq!(spaces(&chosen), [3, 2, 1]);
    }

    #[test]
    fn who_had_the_last_turn_waits_for_the_others_even_in_an_empty_house() {
        let mut places = places(&[due(1, 0, 1)]);
        places.keep(|_| false);

        let chosen = places.choose(queued(vec![due(1, 1, 1), due(2, 9, 1)]), 1, 99);

        assert_eq!(spaces(&chosen), [2]);
    }

    #[test]
    fn who_goes_on_after_a_decision_comes_before_all_that_became_due_after_it() {
        let held = [due(1, 0, 1), due(1, 0, 1)];
        let resumed = vec![due(1, 50, 1)];
        let (before, after) = (due(2, 49, 1), due(3, 51, 1));
        let wanted = Wanted {
            due: vec![after.clone(), before.clone()],
            resumed: resumed.clone(),
        };

        let chosen = places(&held).choose(wanted, 9, 99);

        assert_eq!(chosen, [before, resumed[0].clone(), after]);
    }

    #[test]
    fn who_goes_on_at_a_full_provider_holds_up_nobody_at_another() {
        let held = [due(1, 0, 1)];
        let wanted = Wanted {
            due: vec![due(2, 60, 2)],
            resumed: vec![due(1, 50, 1)],
        };

        assert_eq!(spaces(&places(&held).choose(wanted, 9, 1)), [2]);
    }

    #[test]
    fn what_is_long_ago_is_forgotten() {
        let mut places = Places::default();
        for space in 0..10_000 {
            places.take(Held::by(&due(space, 0, 1)));
        }

        assert!(places.last_turns.len() as u64 <= MEMORY);
        assert!(places.last_turns.contains_key(&SpaceId(9_999)));
    }

    #[test]
    fn a_full_provider_holds_up_nobody_else() {
        let held = [due(1, 0, 1), due(1, 1, 1)];
        let all = vec![due(1, 2, 1), due(1, 3, 2), due(2, 4, 1), due(2, 5, 0)];

        let chosen = places(&held).choose(queued(all), 9, 2);

        let at: Vec<_> = chosen.iter().filter_map(|it| it.run_after).collect();
        assert_eq!(at, [Timestamp(5), Timestamp(3)]);
    }

    proptest! {
        /// No place stays empty while somebody fits; nobody gets two more than another who waits.
        #[test]
        fn places_are_shared_out_evenly(
            waiting in prop::collection::vec((1_i64..6, 0_i64..50, 0_i64..4), 0..60),
            running in prop::collection::vec((1_i64..6, 1_i64..4), 0..20),
            n_free in 0_usize..40,
            per_provider in 1_usize..30,
        ) {
            let held: Vec<Due> = running.iter().map(|(space, provider)| due(*space, 0, *provider)).collect();
            let all: Vec<Due> = waiting.iter().map(|(space, at, provider)| due(*space, *at, *provider)).collect();

            let chosen = places(&held).choose(queued(all.clone()), n_free, per_provider);

            prop_assert!(chosen.len() <= n_free);
            let now: Vec<&Due> = held.iter().chain(&chosen).collect();
            let at = |provider| now.iter().filter(|it| it.provider_id == provider).count();
            for it in &chosen {
                prop_assert!(it.provider_id.is_none() || at(it.provider_id) <= per_provider);
            }
            let left: Vec<&Due> = all.iter().filter(|it| chosen.iter().all(|taken| taken.id != it.id)).collect();
            let fits = |it: &&&Due| it.provider_id.is_none() || at(it.provider_id) < per_provider;
            let n_of = |space| now.iter().filter(|it| it.space_id == space).count();
            for it in left.iter().filter(fits) {
                prop_assert_eq!(chosen.len(), n_free);
                for taken in &chosen {
                    prop_assert!(n_of(taken.space_id) <= n_of(it.space_id) + 1);
                }
            }
        }
    }
}
