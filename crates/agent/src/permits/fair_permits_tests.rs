//! Tests of the permits: to which call the next one is assigned, and that none is lost.

use std::pin::Pin;

use base::ids::UserId;
use futures::FutureExt;
use proptest::collection::vec;
use proptest::prelude::{Strategy, prop_assert, prop_assert_eq, prop_oneof};
use proptest::proptest;

use super::{FairPermit, FairPermits, PermitOwner};

type Acquiring<'a> = Pin<Box<dyn Future<Output = FairPermit> + 'a>>;

const ANN: PermitOwner = PermitOwner::User(UserId(1));
const BEN: PermitOwner = PermitOwner::User(UserId(2));

fn acquire_now(permits: &FairPermits, owner: PermitOwner) -> Option<FairPermit> {
    permits.acquire(owner).now_or_never()
}

fn acquire_all(permits: &FairPermits, owner: PermitOwner) -> Vec<FairPermit> {
    std::iter::from_fn(|| acquire_now(permits, owner)).collect()
}

/// Returns a call that waits.
fn wait(permits: &FairPermits, owner: PermitOwner) -> Acquiring<'_> {
    let mut waiting: Acquiring = Box::pin(permits.acquire(owner));
    assert!((&mut waiting).now_or_never().is_none());
    waiting
}

#[test]
fn one_owner_may_use_all_permits_until_another_one_waits() {
    let permits = FairPermits::new(3);
    let mut of_ann = acquire_all(&permits, ANN);
    let mut own = wait(&permits, ANN);
    let mut other = wait(&permits, BEN);

    assert_eq!((of_ann.len(), permits.n_waiting()), (3, 2));
    of_ann.pop();
    let of_ben = (&mut other).now_or_never();
    assert!(of_ben.is_some() && (&mut own).now_or_never().is_none());
    of_ann.pop();

    assert!(own.now_or_never().is_some(), "its own calls continue");
    assert_eq!(permits.n_waiting(), 0);
}

#[test]
fn owners_take_turns_when_one_call_runs_at_a_time() {
    let permits = FairPermits::new(1);
    let first = acquire_now(&permits, ANN).expect("a free permit");
    let mut waiting = [ANN, ANN, BEN, BEN].map(|owner| (owner, wait(&permits, owner)));
    let mut order = Vec::new();
    let mut running = Some(first);

    while running.take().is_some() {
        for (owner, call) in &mut waiting {
            if let Some(permit) = call.as_mut().now_or_never() {
                *call = Box::pin(std::future::pending());
                order.push(*owner);
                running = Some(permit);
                break;
            }
        }
    }

    assert_eq!(order, [BEN, ANN, BEN, ANN]);
    assert!(permits.0.usage.lock().owners.is_empty());
}

#[test]
fn a_reserved_quarter_is_free_for_others_while_the_calls_of_one_owner_take_long() {
    let permits = FairPermits::with_reserved_quarter(8);
    let of_ann = acquire_all(&permits, ANN);
    let own = wait(&permits, ANN);

    let of_ben = acquire_all(&permits, BEN);

    assert_eq!((of_ann.len(), of_ben.len()), (6, 2));
    drop(own);
    drop((of_ann, of_ben));
    assert_eq!((permits.n_running(), permits.n_waiting()), (0, 0));
}

#[test]
fn a_small_limit_has_no_reserved_permit() {
    for limit in 1..4 {
        let permits = FairPermits::with_reserved_quarter(limit);
        assert_eq!(acquire_all(&permits, ANN).len(), limit);
    }
}

#[test]
fn a_call_that_stops_waiting_holds_no_permit() {
    let permits = FairPermits::new(1);
    let first = acquire_now(&permits, ANN);
    let (second, third) = (wait(&permits, BEN), wait(&permits, BEN));

    // The permit is assigned to the second call, which is dropped before it receives it.
    drop(first);
    drop(second);

    assert!(third.now_or_never().is_some());
    assert_eq!((permits.n_running(), permits.n_waiting()), (0, 0));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Acquire(u8),
    Release(usize),
    StopWaiting(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0_u8..4).prop_map(Step::Acquire),
        3 => (0_usize..16).prop_map(Step::Release),
        1 => (0_usize..16).prop_map(Step::StopWaiting),
    ];
    vec(step, 0..80)
}

fn owner(number: u8) -> PermitOwner {
    PermitOwner::User(UserId(number.into()))
}

/// The running and the waiting calls with their owners, in the order of their arrival.
#[derive(Default)]
struct Calls<'a> {
    running: Vec<(u8, FairPermit)>,
    waiting: Vec<(u8, Acquiring<'a>)>,
}

impl Calls<'_> {
    fn n_running(&self, of: u8) -> usize {
        self.running.iter().filter(|it| it.0 == of).count()
    }

    /// Moves the calls that received a permit, and returns their owners.
    fn collect_granted(&mut self) -> Vec<u8> {
        let mut granted = Vec::new();
        let waiting = std::mem::take(&mut self.waiting);
        for (of, mut call) in waiting {
            match (&mut call).now_or_never() {
                Some(permit) => {
                    self.running.push((of, permit));
                    granted.push(of);
                }
                None => self.waiting.push((of, call)),
            }
        }
        granted
    }
}

proptest! {
    #[test]
    fn no_permit_is_lost_and_a_free_one_goes_to_the_owner_with_the_fewest(
        limit in 1_usize..9, has_reserve in proptest::bool::ANY, steps in steps(),
    ) {
        let permits = match has_reserve {
            true => FairPermits::with_reserved_quarter(limit),
            false => FairPermits::new(limit),
        };
        let n_reserved = if has_reserve { limit / 4 } else { 0 };
        let mut calls = Calls::default();
        for step in steps {
            match step {
                Step::Acquire(of) => calls.waiting.push((of, Box::pin(permits.acquire(owner(of))))),
                Step::Release(at) if at < calls.running.len() => drop(calls.running.remove(at)),
                Step::StopWaiting(at) if at < calls.waiting.len() => drop(calls.waiting.remove(at)),
                Step::Release(_) | Step::StopWaiting(_) => {}
            }
            let fewest = calls.waiting.iter().map(|it| calls.n_running(it.0)).min();
            let n_before: Vec<usize> = (0..4).map(|it| calls.n_running(it)).collect();
            let granted = calls.collect_granted();

            prop_assert!(calls.running.len() <= limit);
            prop_assert_eq!(permits.n_running(), calls.running.len());
            prop_assert_eq!(permits.n_waiting(), calls.waiting.len());
            if let (Step::Release(_), Some(first), false) = (step, granted.first(), has_reserve) {
                prop_assert_eq!(Some(n_before[usize::from(*first)]), fewest);
            }
            for (of, _) in &calls.waiting {
                let n_free = limit - calls.running.len();
                let has_share = calls.n_running(*of) >= limit.div_ceil(4);
                prop_assert!(n_free == 0 || n_free <= n_reserved && has_share);
            }
        }
        drop(calls);
        prop_assert_eq!((permits.n_running(), permits.n_waiting()), (0, 0));
    }
}
