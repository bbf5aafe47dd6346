//! Chooses which due runs are claimed when there are not enough permits for all. No I/O.
//!
//! Every space has the same share of the permits: the next one goes to the space with the fewest
//! running runs, then to the one whose last claim is longest ago, then to the one that has waited
//! longest. A single space may use all permits if no other needs them.
//!
//! A run that resumes after an approval comes before all runs that became due after the decision.

use std::collections::{BTreeMap, HashMap, VecDeque};

use base::clock::Timestamp;
use base::ids::{ProviderId, RunId, SpaceId};

use crate::runs::store::due_runs::DueRun;

/// A run that holds a permit on this node.
#[derive(Clone, Copy, Debug)]
pub struct RunningRun {
    pub run: RunId,
    pub space: SpaceId,
    pub provider: Option<ProviderId>,
}

impl RunningRun {
    /// Returns the entry for a due run that gets a permit.
    pub fn from_due(due: &DueRun) -> Self {
        Self {
            run: due.id,
            space: due.space_id,
            provider: due.provider_id,
        }
    }
}

/// The runs that need a permit.
#[derive(Clone, Debug, Default)]
pub struct PendingRuns {
    /// Queued runs.
    pub due: Vec<DueRun>,
    /// Running runs that returned their permit; due since their approval was decided.
    pub resumed: Vec<DueRun>,
}

/// How many claims the history covers; an older claim counts like none.
const MAX_REMEMBERED_TURNS: u64 = 4_096;

/// The permits in use on a node, and when each space made its last claim.
#[derive(Clone, Debug, Default)]
pub struct ClaimCapacity {
    running: Vec<RunningRun>,
    /// The number of claims so far.
    n_turns: u64,
    /// The number of each space's last claim.
    last_turns: HashMap<SpaceId, u64>,
}

impl ClaimCapacity {
    /// Adds a run that gets a permit.
    pub fn add(&mut self, run: RunningRun) {
        self.n_turns += 1;
        self.last_turns.insert(run.space, self.n_turns);
        if self.last_turns.len() as u64 > MAX_REMEMBERED_TURNS {
            let forgotten = self.n_turns - MAX_REMEMBERED_TURNS;
            self.last_turns.retain(|_, turn| *turn > forgotten);
        }
        self.running.push(run);
    }

    /// Frees the permits of all runs except those for which `is_running` returns `true`.
    pub fn retain(&mut self, is_running: impl Fn(RunId) -> bool) {
        self.running.retain(|it| is_running(it.run));
    }

    /// Returns the providers that have no free permit.
    pub fn full_providers(&self, per_provider: usize) -> Vec<ProviderId> {
        let mut n_runs: HashMap<ProviderId, usize> = HashMap::new();
        for provider in self.running.iter().filter_map(|it| it.provider) {
            *n_runs.entry(provider).or_default() += 1;
        }
        n_runs.retain(|_, n| *n >= per_provider);
        n_runs.into_keys().collect()
    }

    /// Returns the runs that get the next `n_free` permits, with at most `per_provider` runs at one
    /// provider.
    pub fn select(&self, pending: PendingRuns, n_free: usize, per_provider: usize) -> Vec<DueRun> {
        let mut simulated = self.clone();
        let PendingRuns { mut due, resumed } = pending;
        due.extend(resumed.iter().cloned());
        let is_resumed = |it: &DueRun| resumed.iter().any(|resumed| resumed.id == it.id);
        let mut lines = group_by_space(due);
        let mut chosen: Vec<DueRun> = Vec::new();
        while chosen.len() < n_free {
            let full = simulated.full_providers(per_provider);
            let fits = |it: &DueRun| it.provider_id.is_none_or(|id| !full.contains(&id));
            let all = lines.values().flatten();
            let first = all.filter(|it| is_resumed(it) && fits(it));
            let first = first.map(waiting_since).min();
            let may = |it: &DueRun| {
                let in_order = first.is_none_or(|at| waiting_since(it) <= at);
                fits(it) && (in_order || is_resumed(it))
            };
            let next = lines
                .iter()
                .filter_map(|(space, line)| {
                    let at = line.iter().position(may)?;
                    Some((
                        simulated.space_priority(*space),
                        waiting_since(&line[at]),
                        *space,
                        at,
                    ))
                })
                .min();
            let Some((_, _, space, at)) = next else {
                break;
            };
            let taken = lines.get_mut(&space).and_then(|line| line.remove(at));
            chosen.extend(taken.inspect(|it| simulated.add(RunningRun::from_due(it))));
        }
        chosen
    }

    /// Returns the sort key of a space, the smallest first: its running runs, then its last claim.
    fn space_priority(&self, space: SpaceId) -> (usize, u64) {
        let n_running = self.running.iter().filter(|it| it.space == space).count();
        let last_turn = self.last_turns.get(&space);
        (n_running, last_turn.copied().unwrap_or_default())
    }
}

/// Groups the runs by space, the longest waiting first.
fn group_by_space(mut due: Vec<DueRun>) -> BTreeMap<SpaceId, VecDeque<DueRun>> {
    due.sort_by_key(|it| (waiting_since(it), it.conversation_id));
    let mut lines: BTreeMap<SpaceId, VecDeque<DueRun>> = BTreeMap::new();
    for it in due {
        lines.entry(it.space_id).or_default().push_back(it);
    }
    lines
}

/// Returns the time when the run became due.
fn waiting_since(due: &DueRun) -> Timestamp {
    due.run_after.unwrap_or(due.created_at)
}

#[cfg(test)]
mod tests {
    use base::clock::Timestamp;
    use base::ids::{ConversationId, ProviderId, RunId, SpaceId};
    use proptest::prelude::*;

    use super::{ClaimCapacity, MAX_REMEMBERED_TURNS, PendingRuns, RunningRun};
    use crate::runs::store::due_runs::DueRun;

    fn due(space: i64, at: i64, provider: i64) -> DueRun {
        DueRun {
            id: RunId::new(),
            conversation_id: ConversationId(at),
            space_id: SpaceId(space),
            run_after: Some(Timestamp(at)),
            created_at: Timestamp(0),
            provider_id: (provider > 0).then_some(ProviderId(provider)),
        }
    }

    fn queued(due: Vec<DueRun>) -> PendingRuns {
        PendingRuns {
            due,
            resumed: Vec::new(),
        }
    }

    /// Returns the spaces of the chosen runs, in order.
    fn spaces(chosen: &[DueRun]) -> Vec<i64> {
        chosen.iter().map(|it| it.space_id.0).collect()
    }

    fn capacity(held: &[DueRun]) -> ClaimCapacity {
        let mut capacity = ClaimCapacity::default();
        held.iter()
            .for_each(|it| capacity.add(RunningRun::from_due(it)));
        capacity
    }

    #[test]
    fn spaces_take_turns_regardless_of_arrival() {
        let many = (0..100).map(|at| due(1, at, 1));
        let all: Vec<DueRun> = many.chain([due(2, 500, 1), due(3, 600, 1)]).collect();

        let chosen = capacity(&[]).select(queued(all), 5, 99);

        assert_eq!(spaces(&chosen), [1, 2, 3, 1, 1]);
        assert_eq!(
            chosen[3].run_after,
            Some(Timestamp(1)),
            "the run that waits longest comes first"
        );
    }

    #[test]
    fn the_space_with_fewer_running_runs_comes_first() {
        let held = [due(1, 0, 1), due(1, 1, 1), due(2, 2, 1)];
        let all = vec![due(1, 3, 1), due(2, 4, 1), due(2, 5, 1), due(3, 6, 1)];

        let chosen = capacity(&held).select(queued(all), 3, 99);

        assert_eq!(spaces(&chosen), [3, 2, 1]);
    }

    #[test]
    fn the_space_of_the_last_turn_waits_even_when_nothing_runs() {
        let mut capacity = capacity(&[due(1, 0, 1)]);
        capacity.retain(|_| false);

        let chosen = capacity.select(queued(vec![due(1, 1, 1), due(2, 9, 1)]), 1, 99);

        assert_eq!(spaces(&chosen), [2]);
    }

    #[test]
    fn a_resumed_run_comes_before_runs_that_became_due_later() {
        let held = [due(1, 0, 1), due(1, 0, 1)];
        let resumed = vec![due(1, 50, 1)];
        let (before, after) = (due(2, 49, 1), due(3, 51, 1));
        let wanted = PendingRuns {
            due: vec![after.clone(), before.clone()],
            resumed: resumed.clone(),
        };

        let chosen = capacity(&held).select(wanted, 9, 99);

        assert_eq!(chosen, [before, resumed[0].clone(), after]);
    }

    #[test]
    fn a_resumed_run_at_a_full_provider_does_not_block_another_provider() {
        let held = [due(1, 0, 1)];
        let wanted = PendingRuns {
            due: vec![due(2, 60, 2)],
            resumed: vec![due(1, 50, 1)],
        };

        assert_eq!(spaces(&capacity(&held).select(wanted, 9, 1)), [2]);
    }

    #[test]
    fn the_number_of_remembered_turns_is_bounded() {
        let mut capacity = ClaimCapacity::default();
        for space in 0..10_000 {
            capacity.add(RunningRun::from_due(&due(space, 0, 1)));
        }

        assert!(capacity.last_turns.len() as u64 <= MAX_REMEMBERED_TURNS);
        assert!(capacity.last_turns.contains_key(&SpaceId(9_999)));
    }

    #[test]
    fn a_full_provider_does_not_block_others() {
        let held = [due(1, 0, 1), due(1, 1, 1)];
        let all = vec![due(1, 2, 1), due(1, 3, 2), due(2, 4, 1), due(2, 5, 0)];

        let chosen = capacity(&held).select(queued(all), 9, 2);

        let at: Vec<_> = chosen.iter().filter_map(|it| it.run_after).collect();
        assert_eq!(at, [Timestamp(5), Timestamp(3)]);
    }

    proptest! {
        /// No permit stays unused while a run fits; no space gets two more than another that waits.
        #[test]
        fn permits_are_distributed_evenly(
            waiting in prop::collection::vec((1_i64..6, 0_i64..50, 0_i64..4), 0..60),
            running in prop::collection::vec((1_i64..6, 1_i64..4), 0..20),
            n_free in 0_usize..40,
            per_provider in 1_usize..30,
        ) {
            let held: Vec<DueRun> = running.iter().map(|(space, provider)| due(*space, 0, *provider)).collect();
            let all: Vec<DueRun> = waiting.iter().map(|(space, at, provider)| due(*space, *at, *provider)).collect();

            let chosen = capacity(&held).select(queued(all.clone()), n_free, per_provider);

            prop_assert!(chosen.len() <= n_free);
            let now: Vec<&DueRun> = held.iter().chain(&chosen).collect();
            let at = |provider| now.iter().filter(|it| it.provider_id == provider).count();
            for it in &chosen {
                prop_assert!(it.provider_id.is_none() || at(it.provider_id) <= per_provider);
            }
            let left: Vec<&DueRun> = all.iter().filter(|it| chosen.iter().all(|run| run.id != it.id)).collect();
            let fits = |it: &&&DueRun| it.provider_id.is_none() || at(it.provider_id) < per_provider;
            let n_of = |space| now.iter().filter(|it| it.space_id == space).count();
            for it in left.iter().filter(fits) {
                prop_assert_eq!(chosen.len(), n_free);
                for run in &chosen {
                    prop_assert!(n_of(run.space_id) <= n_of(it.space_id) + 1);
                }
            }
        }
    }
}
