//! What each step changes in the model. Which steps are possible is in `possible_steps.rs`.

use stateright::{Model, Property};

use crate::nodes::{Held, Life, Node, Stage};
use crate::rows::{Policy, Rows, Status};
use crate::transactions::SpaceRules;

/// A flaw of the protocol; a model has at most one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    None,
    /// An end compares only the id of the run, neither state nor lease.
    FinishById,
    /// An end compares the id and the state of the run, not the lease.
    FinishByState,
    /// The lease is compared in a separate transaction before the one that writes.
    LeaseReadBefore,
    /// The newest message is read before the run is claimed.
    CutoffFirst,
    /// The dispatcher reads a queued run, then claims it by its id only.
    ClaimById,
    /// A heartbeat renews every run whose row names the node, even one it does not execute.
    HeartbeatByNode,
    /// The reaper queues the same row again.
    RequeueSameRow,
    /// The reaper fails the run that it has read without comparing its state and lease.
    ExpireById,
    /// The follow-up is planned after the commit.
    FollowUpInNextTransaction,
    /// A message is stored in one transaction and planned in the next.
    PlanInNextTransaction,
    /// A stop flags the running run and is acknowledged.
    StopOnlyFlags,
    /// The step after a text does not check whether a user stopped meanwhile.
    FollowUpIgnoresStop,
    /// The turns of auto mode are not counted.
    NoBudget,
    /// The turn of a person whose deadline was read is skipped without comparing it again.
    TimeOutUnchecked,
}

/// The number of user actions and faults of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FaultBudget {
    pub posts: u8,
    pub crashes: u8,
    pub sleeps: u8,
    pub closes: u8,
    pub stops: u8,
    pub resumes: u8,
    pub continues: u8,
    /// Posts of the person whose turn it is.
    pub turns: u8,
    /// Failures of a model.
    pub failures: u8,
    /// Transactions whose response is lost: an end is retried, a claim is unknown to its node.
    pub unconfirmed: u8,
}

#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    pub n_nodes: usize,
    pub n_slots: u8,
    /// The slot of a person in a round that a message started.
    pub human_slot: Option<u8>,
    pub auto_budget: u8,
    pub policy: Policy,
    pub flaw: Flaw,
    pub faults: FaultBudget,
}

/// The rows, the nodes, and the remaining user actions and faults.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SystemState {
    pub rows: Rows,
    /// Sorted by state, because nodes with the same state are interchangeable.
    pub nodes: Vec<Node>,
    pub remaining: FaultBudget,
}

/// One step. A number is the node that executes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Post(usize),
    Plan(usize),
    Stop,
    StopKeeping,
    Resume,
    Continue,
    TakeTurn,
    ReadDeadline(usize),
    TimeOut(usize),
    ReadQueued(usize),
    Claim(usize),
    ClaimUnconfirmed(usize),
    Check(usize, Held),
    Commit(usize, Held),
    CommitUnconfirmed(usize, Held),
    PlanNext(usize, Held),
    Fail(usize, Held),
    Release(usize, Held),
    ReleaseUnconfirmed(usize, Held),
    Heartbeat(usize),
    BecomeStale(u8),
    ReadStale(usize),
    ExpireLease(usize),
    CloseStalledRound(usize),
    Crash(usize),
    Sleep(usize),
    Wake(usize),
    Close(usize),
}

impl Schedule {
    fn rules(&self) -> SpaceRules {
        SpaceRules {
            n_slots: self.n_slots,
            human_slot: self.human_slot,
            auto_budget: (self.flaw != Flaw::NoBudget).then_some(self.auto_budget),
            policy: self.policy,
        }
    }

    /// Returns the state after a step, or `None` if it would change nothing.
    pub fn after(&self, before: &SystemState, step: Step) -> Option<SystemState> {
        let mut state = before.clone();
        match step {
            Step::Post(n) => self.post(&mut state, n),
            Step::Stop => {
                state.rows.stop(self.flaw == Flaw::StopOnlyFlags);
                state.remaining.stops -= 1;
            }
            Step::StopKeeping => {
                state.rows.stop_keeping();
                state.remaining.stops -= 1;
            }
            Step::Resume => {
                state.rows.resume(&self.rules());
                state.remaining.resumes -= 1;
            }
            Step::Continue => {
                state.rows.continue_tail();
                state.remaining.continues -= 1;
            }
            Step::TakeTurn => {
                state.rows.take_turn(&self.rules());
                state.remaining.turns -= 1;
            }
            Step::BecomeStale(run) => state.rows.run_mut(run).is_stale = true,
            Step::Wake(n) => state.nodes[n].life = Life::Awake,
            Step::Sleep(n) => {
                state.nodes[n].life = Life::Asleep;
                state.remaining.sleeps -= 1;
            }
            Step::Crash(n) => {
                state.nodes[n].die();
                state.remaining.crashes -= 1;
            }
            Step::Close(n) => {
                let node = &mut state.nodes[n];
                (node.is_closing, node.stale, node.seen) = (true, None, None);
                node.passed_turn = None;
                state.remaining.closes -= 1;
            }
            of_node => self.work(&mut state, of_node),
        }
        for node in &mut state.nodes {
            // A closing node without turns exits.
            if node.is_closing && node.held.is_empty() && node.unplanned.is_none() {
                node.die();
            }
        }
        state.nodes.sort();
        (state != *before).then_some(state)
    }

    fn post(&self, state: &mut SystemState, n: usize) {
        let rules = self.rules();
        let seq = state.rows.append_post(&rules);
        state.remaining.posts -= 1;
        match self.flaw {
            _ if state.rows.keeps_round(&rules) => {}
            Flaw::PlanInNextTransaction => state.nodes[n].unplanned = Some(seq),
            _ => state.rows.plan_post(seq, &rules),
        }
    }

    fn work(&self, state: &mut SystemState, step: Step) {
        let SystemState {
            rows,
            nodes,
            remaining,
        } = state;
        match step {
            Step::Plan(n) => {
                let seq = nodes[n].unplanned.take().expect("a post is unplanned");
                rows.plan_post(seq, &self.rules());
            }
            Step::ReadDeadline(n) => nodes[n].passed_turn = rows.awaited_turn(),
            Step::TimeOut(n) => {
                let turn = nodes[n].passed_turn.take().expect("a deadline was read");
                let is_checked = self.flaw != Flaw::TimeOutUnchecked;
                rows.time_out(turn, is_checked, &self.rules());
            }
            Step::ReadQueued(n) => {
                let queued = rows.in_status(Status::Queued).expect("a run is queued");
                nodes[n].seen = Some((queued, rows.tail()));
            }
            Step::Claim(n) => self.claim(rows, &mut nodes[n]),
            Step::ClaimUnconfirmed(n) => {
                self.claim(rows, &mut nodes[n]);
                // It is not checked earlier: a node claims only if nothing is running.
                nodes[n].held.retain(|it| !rows.is_held(it.run, it.lease));
                remaining.unconfirmed -= 1;
            }
            Step::Check(n, held) => match rows.is_held(held.run, held.lease) {
                true => nodes[n].set_stage(held, Stage::Checked),
                false => nodes[n].release(held),
            },
            Step::Commit(n, held) => {
                let did = self.commit(rows, held);
                match did && self.flaw == Flaw::FollowUpInNextTransaction {
                    true => nodes[n].set_stage(held, Stage::Committed),
                    false => nodes[n].release(held),
                }
            }
            Step::CommitUnconfirmed(_, held) => {
                self.commit(rows, held);
                remaining.unconfirmed -= 1;
            }
            Step::PlanNext(n, held) => {
                self.plan_next(rows, held);
                nodes[n].release(held);
            }
            Step::Fail(n, held) => {
                if self.may_write(rows, held) {
                    rows.fail(held.run, held.lease);
                }
                nodes[n].release(held);
                remaining.failures -= 1;
            }
            Step::Release(n, held) => {
                self.release_run(rows, held);
                nodes[n].release(held);
            }
            Step::ReleaseUnconfirmed(n, held) => {
                self.release_run(rows, held);
                nodes[n].set_stage(held, Stage::Releasing);
                remaining.unconfirmed -= 1;
            }
            Step::Heartbeat(n) => heartbeat(rows, &mut nodes[n]),
            Step::ReadStale(n) => {
                let run = rows.in_status(Status::Running).expect("a run is running");
                nodes[n].stale = Some((run, rows.run(run).lease));
            }
            Step::ExpireLease(n) => self.expire_lease(rows, &mut nodes[n]),
            Step::CloseStalledRound(_) => rows.close_round(),
            other => unreachable!("{other:?} is no step of a node"),
        }
    }

    fn claim(&self, rows: &mut Rows, node: &mut Node) {
        let seen = node.seen.take();
        let (id, cutoff) = match (seen, self.flaw) {
            (Some((id, _)), Flaw::ClaimById) => (Some(id), None),
            (Some((id, tail)), _) => {
                let queued = rows.in_status(Status::Queued);
                (queued.filter(|it| *it == id), Some(tail))
            }
            (None, _) => (rows.in_status(Status::Queued), None),
        };
        // Every model has the unique index of the running run.
        let Some(run) = id.filter(|_| rows.in_status(Status::Running).is_none()) else {
            return;
        };
        if rows.is_out_of_date(run) {
            return rows.skip(run, &self.rules());
        }
        let lease = rows.claim(run, cutoff);
        if self.flaw == Flaw::HeartbeatByNode {
            node.recorded = Some((run, lease));
        }
        let stage = Stage::Generating;
        node.held.push(Held { run, lease, stage });
        node.held.sort();
    }

    /// Whether the condition of a statement that ends a run holds.
    fn may_write(&self, rows: &Rows, held: Held) -> bool {
        match self.flaw {
            Flaw::FinishById => true,
            Flaw::LeaseReadBefore if held.stage == Stage::Checked => true,
            Flaw::FinishByState => rows.run(held.run).status == Status::Running,
            _ => rows.is_held(held.run, held.lease),
        }
    }

    fn commit(&self, rows: &mut Rows, held: Held) -> bool {
        let may = self.may_write(rows, held);
        if may {
            rows.finish(held.run, held.lease);
        }
        if may && self.flaw != Flaw::FollowUpInNextTransaction {
            self.plan_next(rows, held);
        }
        may
    }

    fn plan_next(&self, rows: &mut Rows, held: Held) {
        let respects_stop = self.flaw != Flaw::FollowUpIgnoresStop;
        rows.plan_next(held.run, respects_stop, &self.rules());
    }

    fn release_run(&self, rows: &mut Rows, held: Held) {
        if self.may_write(rows, held) {
            rows.release_run(held.run, held.lease);
        }
    }

    fn expire_lease(&self, rows: &mut Rows, node: &mut Node) {
        let (run, lease) = node.stale.take().expect("a run is stale");
        let is_stale = rows.is_held(run, lease) && rows.run(run).is_stale;
        match self.flaw {
            Flaw::ExpireById => rows.expire_lease(run),
            Flaw::RequeueSameRow if is_stale => match rows.in_status(Status::Queued) {
                // The unique index of the queued run rejects the row; the reaper retries for ever.
                Some(_) => node.stale = Some((run, lease)),
                None => rows.requeue(run),
            },
            _ if is_stale => rows.expire_lease(run),
            _ => {}
        }
    }
}

/// Renews the leases of the node, and drops turns whose lease is lost.
fn heartbeat(rows: &mut Rows, node: &mut Node) {
    for it in &node.held {
        if rows.is_held(it.run, it.lease) {
            rows.run_mut(it.run).is_stale = false;
        }
    }
    node.held
        .retain(|it| it.stage != Stage::Generating || rows.is_held(it.run, it.lease));
}

impl Model for Schedule {
    type State = SystemState;
    type Action = Step;

    fn init_states(&self) -> Vec<SystemState> {
        vec![SystemState {
            rows: Rows::default(),
            nodes: vec![Node::new(); self.n_nodes],
            remaining: self.faults,
        }]
    }

    fn actions(&self, state: &SystemState, steps: &mut Vec<Step>) {
        self.steps_of_nodes(state, steps);
        self.outside_steps(state, steps);
    }

    fn next_state(&self, state: &SystemState, step: Step) -> Option<SystemState> {
        self.after(state, step)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        crate::invariants::all(self)
    }

    /// Only a flawed model exceeds the boundary.
    fn within_boundary(&self, state: &SystemState) -> bool {
        state.rows.texts.len() <= 8
    }
}
