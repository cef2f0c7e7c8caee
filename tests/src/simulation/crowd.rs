//! Who takes part in a run: workers that come and go, producers, an operator.

use std::{sync::Arc, time::Duration};

use retryjob::{Event as Told, Node as Name, Queue, Status};
use retryjob_core::op::{
    enqueue::Due,
    operate::{Action, Operation},
};
use tokio::{sync::oneshot, task::JoinSet, time::Instant};

use super::{
    Sim, SimJob, backend,
    plan::{Stage, handle},
    world::{Node, World},
};
use crate::{
    always,
    history::{Event, Recorder},
    sometimes,
};

/// How long everyone may take, and then the last worker, once nothing goes wrong
/// any more.
const DRAIN_MAX: Duration = Duration::from_secs(600);

/// Everyone.
#[derive(Clone, Debug)]
pub struct Crowd {
    world: Arc<World>,
    recorder: Recorder,
    ends: Instant,
}

impl Crowd {
    #[must_use]
    pub fn new(world: &Arc<World>, recorder: &Recorder) -> Self {
        Self {
            world: Arc::clone(world),
            recorder: recorder.clone(),
            ends: Instant::now() + world.chance.ms(4_000, 16_000),
        }
    }

    /// Plays the run to its end; whether all work was done then.
    pub async fn play(self) -> bool {
        let mut all = JoinSet::new();
        for slot in 0..=self.world.chance.below(4) {
            all.spawn(self.clone().workers(slot));
        }
        for no in 0..2 {
            all.spawn(self.clone().produce(no));
        }
        all.spawn(self.clone().operate());
        all.spawn(self.clone().set_clock());
        let everyone = async {
            while let Some(ended) = all.join_next().await {
                always!(self.world, ended.is_ok(), "ended by {:?}", ended.err());
            }
        };
        let ended = tokio::time::timeout(DRAIN_MAX, everyone).await;
        always!(self.world, ended.is_ok(), "somebody never comes to an end");
        all.shutdown().await;
        self.world.calm();
        self.drain().await
    }

    fn queue(&self, node: &Arc<Node>) -> (Queue<SimJob, Sim>, Stage) {
        let backend = backend(&self.world, node, &self.recorder);
        let stage = Stage {
            world: Arc::clone(&self.world),
            node: Arc::clone(node),
            recorder: self.recorder.clone(),
            backend: backend.clone(),
        };
        // One for each process: no two share what wakes them, whose order
        // tokio draws from a source of its own.
        (Queue::new(backend), stage)
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.ends
    }

    async fn pause(&self, from_ms: u64, to_ms: u64) {
        tokio::time::sleep(self.world.chance.ms(from_ms, to_ms)).await;
    }

    /// One worker after the other.
    async fn workers(self, slot: u64) {
        let mut no = 0;
        while !self.is_over() {
            self.worker(&format!("w{slot}.{no}")).await;
            self.pause(0, 400).await;
            no += 1;
        }
    }

    /// The life of one worker: until it crashes, or is asked to stop.
    async fn worker(&self, name: &str) {
        let (world, chance) = (&self.world, &self.world.chance);
        let node = Node::new(name);
        let (queue, stage) = self.queue(&node);
        let mut told = queue.events();
        let suffix = u32::try_from(chance.below(1 << 32)).unwrap_or_default();
        let worker = queue
            .worker_with(stage, handle)
            .as_node(Name::with_suffix(name, suffix))
            .concurrency(usize::try_from(chance.below(4)).unwrap() + 1)
            .prefetch(usize::try_from(chance.below(4)).unwrap())
            .poll_max(chance.ms(50, 500))
            .reap_every(chance.ms(50, 1000))
            .drain_for(chance.ms(0, 3000));
        let (stop, stopped) = oneshot::channel::<()>();
        let mut running = tokio::spawn(worker.run_until(async {
            let _ = stopped.await;
        }));
        let mut has_aborted = tokio::select! {
            biased;
            () = node.aborted() => true,
            () = self.live(&node) => false,
        };
        let is_stopped = !has_aborted && !chance.percent(60);
        if is_stopped {
            let _ = stop.send(());
            tokio::select! {
                biased;
                // A handler may end the process while the worker waits for it.
                () = node.aborted() => has_aborted = true,
                ended = &mut running => {
                    let is_fine = matches!(&ended, Ok(Ok(_)));
                    always!(world, is_fine, "{name} ended with {ended:?}");
                }
            }
        }
        if has_aborted || !is_stopped {
            world.fault("crash");
            let has_jobs = !world.in_hand(&node).is_empty();
            sometimes!(world, has_jobs, "a crash took jobs in hand along");
            node.crash();
            running.abort();
            let _ = running.await;
        }
        while let Ok(event) = told.try_recv() {
            if let Told::LeaseLost { id, attempt_no } = event {
                sometimes!(world, "a worker told that a lease was lost");
                self.recorder.note(Event::LostTold { id, attempt_no });
            }
        }
    }

    /// Some time in the life of a process, with pauses of all of it.
    async fn live(&self, node: &Node) {
        let until = Instant::now() + self.world.chance.ms(100, 5000);
        while Instant::now() < until && !self.is_over() {
            self.pause(20, 1500).await;
            if !self.world.chance.percent(self.world.odds.stalled) {
                continue;
            }
            self.world.fault("pause");
            let before = self.world.in_hand(node);
            let span = self.world.chance.ms(200, 4500);
            node.stall(span);
            tokio::time::sleep(span).await;
            let has_lost = before.iter().any(|lease| !self.world.is_leased(*lease));
            sometimes!(
                self.world,
                has_lost,
                "a pause outlived the lease of a job in hand"
            );
        }
    }

    /// Sets the database's clock ahead now and then.
    async fn set_clock(self) {
        while !self.is_over() {
            self.pause(200, 2000).await;
            if self.world.chance.percent(self.world.odds.jumped) {
                self.world.fault("clock set ahead");
                self.world.jump(self.world.chance.ms(1_000, 5_000));
            }
        }
    }

    /// Enqueues now and then, some keys twice, and again what failed.
    async fn produce(self, no: u32) {
        let (queue, _) = self.queue(&Node::new(format!("producer{no}")));
        let chance = &self.world.chance;
        for round in 0..6 {
            let first = no * 1000 + round * 10;
            let count = u32::try_from(chance.below(5)).unwrap() + 1;
            // One key of the round before comes again.
            let again = (chance.percent(30) && round > 0).then(|| first - 10);
            let jobs: Vec<_> = (first..first + count)
                .chain(again)
                .map(|no| SimJob { no })
                .collect();
            let due = match chance.percent(30) {
                true => Due::In(chance.ms(0, 2000)),
                false => Due::Now,
            };
            let mut has_failed = false;
            loop {
                let asked = jobs.iter().map(|job| (job, due));
                match queue.enqueue_many_due(asked).await {
                    Ok(answers) => {
                        let is_known = has_failed && answers.iter().all(|answer| !answer.is_new);
                        sometimes!(
                            self.world,
                            is_known,
                            "an enqueue that came twice made one job"
                        );
                        break;
                    }
                    Err(_) => has_failed = true,
                }
                self.pause(1, 50).await;
            }
            self.pause(0, 1200).await;
        }
    }

    /// Acts on jobs that were in a state for it when they were looked at.
    async fn operate(self) {
        let (queue, _) = self.queue(&Node::new("operator"));
        let chance = &self.world.chance;
        while !self.is_over() {
            self.pause(20, 500).await;
            let rows = self.world.rows();
            let rows: Vec<_> = rows.iter().map(|row| (row.id, row.status)).collect();
            let Some((id, status)) = chance.pick(&rows) else {
                continue;
            };
            let action = chance.pick(&Action::ALL).unwrap_or(Action::Hold);
            // Whoever acts has looked before, and has thought about it.
            self.pause(0, 150).await;
            // A wish that the state machine would refuse is rarely worth it.
            if status.after(action.step()).is_err() && !chance.percent(10) {
                continue;
            }
            let ids = [id];
            let answer = match action {
                Action::Hold => queue.hold(&ids, "wait").await,
                Action::Release => queue.release(&ids).await,
                Action::Cancel => queue.cancel(&ids, "never mind").await,
                Action::Requeue => queue.requeue(&ids).await,
            };
            for (_, operation) in answer.map(|answer| answer.answers).unwrap_or_default() {
                self.see_operation(action, status, operation);
            }
        }
    }

    fn see_operation(&self, action: Action, before: Status, operation: Operation) {
        let world = &self.world;
        match operation {
            Operation::Refused { status } => {
                let is_running = status == Status::Running;
                sometimes!(world, is_running, "an operator came while the job ran");
                let is_late = is_running && before != Status::Running;
                sometimes!(world, is_late, "a claim was faster than an operator");
            }
            Operation::Done { .. } => {
                let is_release = action == Action::Release;
                sometimes!(world, is_release, "a held job was released");
            }
            Operation::Missing => {}
        }
    }

    /// One more worker, without faults, until nothing is left.
    async fn drain(&self) -> bool {
        let node = Node::new("last");
        let (queue, stage) = self.queue(&node);
        let worker = queue
            .worker_with(stage, handle)
            .as_node(Name::with_suffix("last", 0))
            .run_until_idle();
        let ended = tokio::time::timeout(DRAIN_MAX, tokio::spawn(worker)).await;
        matches!(ended, Ok(Ok(Ok(_))))
    }
}
