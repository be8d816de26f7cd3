//! A worker: takes messages, has its gate settle them, tells the queue. It dies and is started again.

use std::{sync::Arc, time::Duration};

use identity_core::{
    claim::{Claims, Terms},
    event::{Delivery, Item, read},
    gate::{AllowList, Disposition, Gate, ItemAnswer, Outcome, Parts},
    host::Clock as _,
};
use tokio::time::Instant;

use super::{
    plan::{Control, notification},
    process::Process,
    store::Connection,
    work::{Objects, Work},
    world::{Place, State, World},
};

/// A worker's present process and gate, for what befalls it from outside.
pub(super) type Slot = Arc<std::sync::Mutex<Option<(Arc<Process>, Gate)>>>;

/// The lives of worker `number`, one after another.
pub(super) async fn lives(world: Arc<World>, number: usize, slot: Slot) {
    for life in 1.. {
        let process = Process::new(&world, format!("w{number}.{life}"));
        let gate = gate(&world, &process);
        if let Ok(mut slot) = slot.lock() {
            *slot = Some((process.clone(), gate.clone()));
        }
        tokio::select! {
            biased;
            () = process.died() => {}
            () = serve(&world, &process, &gate) => {}
        }
        let pause = world.with(|state| {
            state.tell(&process.name, "gone");
            state.up_to(world.plan.lease)
        });
        tokio::time::sleep(pause).await;
    }
}

fn gate(world: &Arc<World>, process: &Arc<Process>) -> Gate {
    let plan = &world.plan;
    // A function that is invoked with no time left: its lease ends at once.
    let no_time = world.with(|state| !state.calm && state.chance(4));
    let lease = if no_time { Duration::ZERO } else { plan.lease };
    world.with(|state| {
        state.tell(
            &process.name,
            format_args!("starts, with leases of {lease:?}"),
        )
    });
    let terms = Terms {
        lease,
        max_attempts: plan.max_attempts,
        done_ttl: plan.done_ttl(),
    };
    let store = Arc::new(Connection(process.clone()));
    Gate::new(Parts {
        contract: world.catalogue.contract.clone(),
        claims: Claims::new(store, process.clone(), process.clone(), terms),
        clock: process.clone(),
        objects: Arc::new(Objects(process.clone())),
        job: Arc::new(Work(process.clone())),
        max_run: plan.max_run(),
        allow: AllowList::Everything,
    })
}

async fn serve(world: &Arc<World>, process: &Arc<Process>, gate: &Gate) {
    loop {
        process.pass().await;
        let batch = world.with(|state| receive(world, state));
        if batch.is_empty() {
            let pause = world.with(|state| state.next_look(world.plan.lease / 2));
            tokio::time::sleep(pause).await;
            continue;
        }
        let (concurrency, patience) = world.with(|state| {
            state.tell(&process.name, format_args!("receives messages {batch:?}"));
            let goes_away = !state.calm && state.chance(6);
            let patience = goes_away.then(|| state.up_to(world.plan.lease * 2));
            (state.rng.usize(1..=3), patience)
        });
        let items = items(world, &batch);
        let settled = gate.settle_all(&items, concurrency);
        let answers = tokio::select! {
            biased;
            () = give_up(process, patience) => None,
            answers = settled => Some(answers),
        };
        let Some(answers) = answers else {
            world.with(|state| {
                state.fault("caller went away");
                state.tell(&process.name, "nobody waits for the answers any more");
            });
            continue;
        };
        // The properties hold at the moment of the answer; the queue learns it when it learns it.
        let verdicts = world.with(|state| judge(world, process, state, &answers));
        process.pass().await;
        let stopped = world.with(|state| acknowledge(world, state, &verdicts));
        if stopped {
            return;
        }
    }
}

async fn give_up(process: &Process, patience: Option<Duration>) {
    match patience {
        Some(patience) => process.sleep(patience).await,
        None => std::future::pending().await,
    }
}

/// Takes some visible messages, in any order.
fn receive(world: &World, state: &mut State) -> Vec<usize> {
    let now = Instant::now();
    let queued = state.messages.iter().enumerate();
    let mut visible: Vec<usize> = queued
        .filter(|(_, message)| message.place == Place::Queued && message.visible_at <= now)
        .map(|(number, _)| number)
        .collect();
    state.rng.shuffle(&mut visible);
    visible.truncate(state.rng.usize(1..=4));
    let mut taken = Vec::new();
    for number in visible {
        let message = &mut state.messages[number];
        if !state.calm && message.receives >= world.plan.max_receives {
            message.place = Place::Dead;
            state.fault("message to the dead-letter queue");
            continue;
        }
        message.receives += 1;
        message.visible_at = now + world.plan.visibility;
        taken.push(number);
    }
    taken
}

impl State {
    /// When a worker that found nothing looks again.
    fn next_look(&mut self, longest: Duration) -> Duration {
        let now = Instant::now();
        let queued = self
            .messages
            .iter()
            .filter(|message| message.place == Place::Queued);
        let next = queued
            .map(|message| message.visible_at.saturating_duration_since(now))
            .min();
        let jitter = self.millis(1, 50);
        next.unwrap_or(longest).min(longest) + jitter
    }
}

/// The items of these messages, as one delivery of a queue.
fn items(world: &World, batch: &[usize]) -> Vec<Item> {
    let message = |number: &usize| {
        let puts = world.with(|state| state.messages[*number].puts.clone());
        let body = notification(&puts).replace('"', "\\\"");
        format!(r#"{{"messageId":"{number}","eventSource":"aws:sqs","body":"{body}"}}"#)
    };
    let messages: Vec<String> = batch.iter().map(message).collect();
    let body = format!(r#"{{"Records":[{}]}}"#, messages.join(","));
    read(&Delivery::from_body(body.as_bytes()))
}

/// What to tell the queue of one message.
struct Verdict {
    message: usize,
    acknowledged: bool,
    visible_in: Option<Duration>,
    stopping: bool,
}

fn judge(
    world: &World,
    process: &Process,
    state: &mut State,
    answers: &[ItemAnswer],
) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for answer in answers {
        let mut acknowledged = answer.disposition == Disposition::Ack;
        let held = |outcome: &Outcome| matches!(outcome, Outcome::Held { .. });
        if world.plan.control == Some(Control::AcknowledgeHeld) {
            acknowledged |= answer.settled.iter().all(|settled| {
                held(&settled.outcome) || settled.outcome.disposition() == Disposition::Ack
            });
        }
        let mut stopping = false;
        for settled in &answer.settled {
            let job = settled
                .key
                .as_ref()
                .and_then(|key| world.catalogue.job(key));
            let job = job.map(|job| job.to_string()).unwrap_or_default();
            let outcome = &settled.outcome;
            state.tell(&process.name, format_args!("answer {job}: {outcome:?}"));
            world.answered(state, settled, acknowledged);
            let error = outcome.error().unwrap_or_default();
            stopping |= error.contains("is being stopped");
            if error.starts_with("the worker was stopped") {
                state.saw("interrupted");
            }
        }
        let Some(message) = answer
            .origin
            .message_id
            .as_ref()
            .and_then(|id| id.parse().ok())
        else {
            state.violated(format!("an answer to no message: {:?}", answer.origin));
            continue;
        };
        let visible_in = match answer.disposition {
            Disposition::Ack => None,
            Disposition::Retry {
                not_before: Some(until),
            } => Some(process.unix_millis().until(until)),
            Disposition::Retry { not_before: None } => Some(state.millis(10, 1_000)),
        };
        verdicts.push(Verdict {
            message,
            acknowledged,
            visible_in,
            stopping,
        });
    }
    verdicts
}

/// Tells the queue. Returns whether the worker is being stopped.
fn acknowledge(world: &World, state: &mut State, verdicts: &[Verdict]) -> bool {
    for verdict in verdicts {
        let longest = world.plan.lease * 4;
        // Only what comes again finds that its row was forgotten.
        let often = if world.plan.short_memory { 60 } else { 6 };
        let comes_again = !state.calm && state.chance(often);
        let delay = state.up_to(longest);
        let message = &mut state.messages[verdict.message];
        if verdict.acknowledged && !comes_again {
            message.place = Place::Acknowledged;
        } else if verdict.acknowledged {
            message.visible_at = Instant::now() + delay;
            state.fault("acknowledgement lost");
        } else if let Some(visible_in) = verdict.visible_in {
            message.visible_at = Instant::now() + visible_in.min(longest);
        }
    }
    verdicts.iter().any(|verdict| verdict.stopping)
}
