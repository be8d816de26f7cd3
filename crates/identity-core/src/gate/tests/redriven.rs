//! What was recorded without an attempt, sent again: settled elsewhere and closed, or recorded again.

use std::sync::Arc;

use super::bench::{Act, Bench, Objects, item, put, record};
use crate::{
    claim::{ClaimKey, ClaimStore as _, Reason, Record, Resender, Resent, Status, testing::Queue},
    event::{Delivery, Item, read},
    gate::{AllowList, Disposition, Gate, NoJob, Outcome, Settled},
    identity::Contract,
};

fn resender(bench: &Bench, gate: &Gate, queue: &Arc<Queue>) -> Resender {
    Resender {
        claims: gate.claims().clone(),
        contract: Contract::parse(bench.contract).unwrap(),
        outbox: queue.clone(),
        grace: Resender::GRACE,
    }
}

/// Redrives the record, and reads what was sent.
async fn redrive(bench: &Bench, gate: &Gate, key: &ClaimKey) -> Vec<Item> {
    let queue = Arc::default();
    let resent = resender(bench, gate, &queue).redrive(key, false).await;
    assert!(matches!(resent, Ok(Resent::Sent { .. })), "{resent:?}");
    sent(&queue)
}

/// Sweeps once everything is old enough, and reads what was sent.
async fn sweep(bench: &Bench, gate: &Gate) -> Vec<Item> {
    tokio::time::sleep(Resender::GRACE * 2).await;
    let queue = Arc::default();
    let swept = resender(bench, gate, &queue)
        .sweep(false, &mut |_, _, _| ())
        .await;
    swept.unwrap();
    sent(&queue)
}

fn sent(queue: &Arc<Queue>) -> Vec<Item> {
    let messages = queue.messages.lock().unwrap();
    messages
        .iter()
        .flat_map(|message| read(&Delivery::from_body(message.body.as_bytes())))
        .collect()
}

async fn row(bench: &Bench, settled: &Settled) -> (Status, Option<Reason>, u32) {
    let Record {
        status,
        reason,
        redrives,
        ..
    } = bench.record(settled).await;
    (status, reason, redrives)
}

/// The ways by which an event reaches a gate.
#[derive(Debug, Clone, Copy)]
enum Way {
    Alone,
    InBatch,
    InOrder,
}

impl Way {
    async fn settle(self, gate: &Gate, item: &Item) -> Settled {
        let items = std::slice::from_ref(item);
        let mut answers = match self {
            Self::Alone => return gate.settle(item).await,
            Self::InBatch => gate.settle_all(items, 2).await,
            Self::InOrder => gate.settle_groups(items, 2).await,
        };
        assert_eq!(answers.len(), 1);
        let answer = answers.remove(0);
        assert_eq!(answer.settled.len(), 1);
        assert_eq!(
            answer.disposition,
            answer.settled[0].outcome.disposition(),
            "{self:?}"
        );
        answer.settled[0].clone()
    }
}

async fn an_allowed_event_becomes_its_job_and_its_record_is_closed(way: Way) {
    let mut bench = Bench::new(&[Act::Fail]);
    bench.allow = AllowList::parse("other").unwrap();
    let refused = way.settle(&bench.gate(), &put("a.shp", "e1")).await;
    bench.allow = AllowList::Everything;
    let gate = bench.gate();
    let items = redrive(&bench, &gate, refused.key.as_ref().unwrap()).await;
    let failed = way.settle(&gate, &items[0]).await;
    assert!(
        matches!(failed.outcome, Outcome::Failed { .. }),
        "{failed:?}"
    );
    assert_eq!(
        row(&bench, &refused).await,
        (Status::Failed, Some(Reason::Released), 1),
        "not closed before its event is acknowledged"
    );
    let done = way.settle(&gate, &items[0]).await;
    assert!(
        matches!(done.outcome, Outcome::Done { attempt: 2, .. }),
        "{done:?}"
    );
    assert_ne!(done.key, refused.key);
    assert_eq!(
        row(&bench, &refused).await,
        (Status::Done, Some(Reason::Redriven), 1),
        "{way:?}"
    );
    assert!(sweep(&bench, &gate).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_allowed_by_now_becomes_its_job_and_its_record_is_closed() {
    for way in [Way::Alone, Way::InBatch, Way::InOrder] {
        an_allowed_event_becomes_its_job_and_its_record_is_closed(way).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_still_refused_is_rejected_again_also_once_it_was_closed() {
    let bench = Bench {
        allow: AllowList::parse("other").unwrap(),
        ..Bench::new(&[])
    };
    let gate = bench.gate();
    let refused = gate.settle(&put("a.shp", "e1")).await;
    let key = refused.key.clone().unwrap();
    for redrives in 1..3 {
        let items = redrive(&bench, &gate, &key).await;
        let again = gate.settle(&items[0]).await;
        assert_eq!(again.key.as_ref(), Some(&key));
        let rejected = (Status::Rejected, Some(Reason::NotAllowed), redrives);
        assert_eq!(row(&bench, &refused).await, rejected);
    }
    let items = redrive(&bench, &gate, &key).await;
    let redriven = items[0].redriven.as_ref().unwrap();
    gate.claims().close(&key, redriven).await.unwrap();
    assert_eq!(row(&bench, &refused).await.0, Status::Done);
    gate.settle(&put("a.shp", "e1")).await;
    assert_eq!(
        row(&bench, &refused).await,
        (Status::Rejected, Some(Reason::NotAllowed), 3)
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_that_can_be_read_by_now_closes_its_record_with_the_last_of_its_events() {
    let bench = Bench::new(&[]);
    let gate = bench.gate();
    let refused = gate.settle(&item("{}")).await;
    let key = refused.key.clone().unwrap();
    // As a reader left it that did not know the envelope yet.
    let stored = bench.store.rows.get(&key).await.unwrap().unwrap();
    let body = format!(
        r#"{{"Records":[{},{}]}}"#,
        record("geo", "a.shp", "e1"),
        record("geo", "b.shp", "e1")
    );
    let older = Record {
        body: Some(body.into_bytes()),
        ..stored.record
    };
    let when = crate::claim::Precondition::Unchanged(stored.version);
    bench.store.rows.put(&key, &older, &when).await.unwrap();
    let items = redrive(&bench, &gate, &key).await;
    assert_eq!(items.len(), 2);
    gate.settle(&items[1]).await;
    assert_eq!(row(&bench, &refused).await.0, Status::Failed);
    gate.settle(&items[0]).await;
    assert_eq!(row(&bench, &refused).await.1, Some(Reason::Redriven));
    assert_eq!(bench.runs().len(), 2);
}

/// Whoever may send an event can name any record, and its key can be computed by who knows what it is of.
#[tokio::test(start_paused = true)]
async fn no_event_closes_a_record_of_another() {
    let mut bench = Bench::new(&[]);
    let unreadable = bench.gate().settle(&item("{}")).await;
    bench.allow = AllowList::parse("other").unwrap();
    let refused = bench.gate().settle(&put("a.shp", "e1")).await;
    bench.allow = AllowList::Everything;
    let gate = bench.gate();
    for record in [&unreadable, &refused] {
        let key = record.key.as_ref().unwrap();
        let sent = redrive(&bench, &gate, key).await;
        assert_eq!(sent[0].redriven.as_ref().unwrap().redrives, 1);
        for (name, token) in [("b.shp", "e1"), ("a.shp", "e2")] {
            let forged = format!(
                r#"{{"firstclaim":{{"version":1,"provider":"s3","container":"geo","key":"{name}",
                    "token":{{"kind":"etag","value":"{token}"}},"record":"{key}","redrives":1}}}}"#
            );
            let settled = gate.settle(&item(&forged)).await;
            assert_eq!(settled.outcome.disposition(), Disposition::Ack);
            assert_eq!(
                row(&bench, record).await,
                (Status::Failed, Some(Reason::Released), 1)
            );
        }
    }
    let forged = format!(
        r#"{{"firstclaim":{{"version":1,"body":"e30K","record":"{}","redrives":1}}}}"#,
        refused.key.as_ref().unwrap()
    );
    gate.settle(&item(&forged)).await;
    assert_eq!(row(&bench, &refused).await.0, Status::Failed);
}

#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_closed_has_its_event_delivered_again() {
    let mut bench = Bench::new(&[]);
    bench.allow = AllowList::parse("other").unwrap();
    let refused = bench.gate().settle(&put("a.shp", "e1")).await;
    bench.allow = AllowList::Everything;
    let gate = bench.gate();
    let items = redrive(&bench, &gate, refused.key.as_ref().unwrap()).await;
    let redriven = items[0].redriven.as_ref().unwrap();
    let settled = Settled {
        key: None,
        uri: None,
        outcome: Outcome::Duplicate,
    };
    *bench.store.away.lock().unwrap() = true;
    let unclosed = gate.close(redriven, settled.clone()).await;
    assert!(
        matches!(unclosed.outcome.disposition(), Disposition::Retry { .. }),
        "{unclosed:?}"
    );
    *bench.store.away.lock().unwrap() = false;
    assert_eq!(gate.close(redriven, settled.clone()).await, settled);
    assert_eq!(row(&bench, &refused).await.1, Some(Reason::Redriven));
}

/// An Azure file that was opened, and not closed yet.
fn created() -> Item {
    item(
        r#"{"eventType":"Microsoft.Storage.BlobCreated","topic":"/subscriptions/s/storageAccounts/acct",
        "subject":"/blobServices/default/containers/c/blobs/a.shp",
        "data":{"api":"CreateFile","contentLength":0,"eTag":"e0","url":"https://acct.dfs.core.windows.net/c/a.shp"}}"#,
    )
}

#[tokio::test(start_paused = true)]
async fn a_file_that_was_not_whole_waits_until_the_store_says_that_it_is() {
    let bench = Bench::new(&[]);
    let gate = bench.gate();
    let waiting = gate.settle(&created()).await;
    assert_eq!(row(&bench, &waiting).await, (Status::Waiting, None, 0));

    *bench.objects.lock().unwrap() = Objects::Unavailable;
    let items = sweep(&bench, &gate).await;
    let unknown = gate.settle(&items[0]).await;
    assert!(matches!(unknown.outcome, Outcome::Unavailable { .. }));
    assert_eq!(row(&bench, &waiting).await, (Status::Waiting, None, 1));

    *bench.objects.lock().unwrap() = Objects::Empty("e0");
    let items = sweep(&bench, &gate).await;
    let empty = gate.settle(&items[0]).await;
    assert!(
        matches!(empty.outcome, Outcome::Waiting { .. }),
        "{empty:?}"
    );
    assert_eq!((&empty.key, bench.runs().len()), (&waiting.key, 0));
    assert_eq!(row(&bench, &waiting).await, (Status::Waiting, None, 2));

    *bench.objects.lock().unwrap() = Objects::Hold("e7");
    let items = sweep(&bench, &gate).await;
    let whole = gate.settle(&items[0]).await;
    assert!(
        matches!(whole.outcome, Outcome::Done { attempt: 1, .. }),
        "{whole:?}"
    );
    assert_eq!(bench.runs(), [("etag:e7".to_owned(), 1)]);
    assert_eq!(
        row(&bench, &waiting).await,
        (Status::Done, Some(Reason::Redriven), 3)
    );
    assert!(sweep(&bench, &gate).await.is_empty());

    gate.settle(&created()).await;
    assert_eq!(
        row(&bench, &waiting).await.0,
        Status::Waiting,
        "it was opened again"
    );
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_gone_waits_no_more() {
    let bench = Bench::new(&[]);
    let gate = bench.gate();
    let waiting = gate.settle(&created()).await;
    *bench.objects.lock().unwrap() = Objects::Nothing;
    let items = sweep(&bench, &gate).await;
    let gone = gate.settle(&items[0]).await;
    assert_eq!(gone.outcome, Outcome::Ignored(NoJob::Gone));
    assert_eq!(row(&bench, &waiting).await.1, Some(Reason::Redriven));
}

/// A write of an Azure block blob.
fn written(api: &str, length: u32, etag: &str) -> Item {
    item(&format!(
        r#"{{"eventType":"Microsoft.Storage.BlobCreated","topic":"/subscriptions/s/storageAccounts/acct",
        "subject":"/blobServices/default/containers/c/blobs/done.shp","data":{{"api":"{api}","contentLength":{length},
        "eTag":"{etag}","blobType":"BlockBlob","url":"https://acct.blob.core.windows.net/c/done.shp"}}}}"#
    ))
}

#[tokio::test(start_paused = true)]
async fn a_blob_that_was_put_empty_and_stays_so_is_a_job() {
    let bench = Bench::new(&[]);
    let gate = bench.gate();
    *bench.objects.lock().unwrap() = Objects::Empty("e2");
    let waiting = gate.settle(&written("PutBlob", 0, "e1")).await;
    assert_eq!(row(&bench, &waiting).await, (Status::Waiting, None, 0));
    // It was put once more, also empty: now that version has to stand for a while.
    let items = sweep(&bench, &gate).await;
    let again = gate.settle(&items[0]).await;
    assert!(
        matches!(again.outcome, Outcome::Waiting { .. }),
        "{again:?}"
    );
    assert_eq!((&again.key, bench.runs().len()), (&waiting.key, 0));
    let items = sweep(&bench, &gate).await;
    let whole = gate.settle(&items[0]).await;
    assert!(
        matches!(whole.outcome, Outcome::Done { attempt: 1, .. }),
        "{whole:?}"
    );
    assert_eq!(bench.runs(), [("etag:e2".to_owned(), 1)]);
    assert_eq!(
        row(&bench, &waiting).await,
        (Status::Done, Some(Reason::Redriven), 2)
    );
}

#[tokio::test(start_paused = true)]
async fn a_blob_that_was_opened_and_then_committed_is_one_job_whichever_comes_first() {
    for (first, second) in [(0, 1), (1, 0)] {
        let bench = Bench::new(&[]);
        let gate = bench.gate();
        *bench.objects.lock().unwrap() = Objects::Hold("e2");
        let events = [
            written("PutBlob", 0, "e1"),
            written("PutBlockList", 9, "e2"),
        ];
        let settled = [
            gate.settle(&events[first]).await,
            gate.settle(&events[second]).await,
        ];
        let opened = &settled[first];
        assert_eq!(row(&bench, opened).await.0, Status::Waiting);
        let items = sweep(&bench, &gate).await;
        assert_eq!(items.len(), 1);
        let looked = gate.settle(&items[0]).await;
        assert_eq!(looked.outcome, Outcome::Duplicate);
        assert_eq!(bench.runs(), [("etag:e2".to_owned(), 1)]);
        assert_eq!(row(&bench, opened).await.1, Some(Reason::Redriven));
    }
}

#[tokio::test(start_paused = true)]
async fn where_nobody_can_look_what_was_put_empty_stays_recorded() {
    let bench = Bench::new(&[]);
    let gate = bench.gate();
    *bench.objects.lock().unwrap() = Objects::NotOurs;
    let waiting = gate.settle(&written("PutBlob", 0, "e1")).await;
    for _ in 0..3 {
        let items = sweep(&bench, &gate).await;
        let again = gate.settle(&items[0]).await;
        assert!(
            matches!(again.outcome, Outcome::Waiting { .. }),
            "{again:?}"
        );
    }
    let record = bench.record(&waiting).await;
    assert_eq!((record.status, record.redrives), (Status::Waiting, 3));
    assert!(record.error.unwrap().ends_with("which this one cannot"));
}

#[tokio::test(start_paused = true)]
async fn a_failed_job_that_nobody_redelivers_is_finished_by_a_sweep_or_exhausted() {
    let bench = Bench::new(&[Act::Fail, Act::Succeed, Act::Fail, Act::Fail, Act::Fail]);
    let gate = bench.gate();
    let failed = gate.settle(&put("a.shp", "e1")).await;
    let items = sweep(&bench, &gate).await;
    let done = gate.settle(&items[0]).await;
    assert_eq!(done.key, failed.key);
    assert_eq!(row(&bench, &failed).await, (Status::Done, None, 1));

    let failed = gate.settle(&put("b.shp", "e1")).await;
    for _ in 0..3 {
        let items = sweep(&bench, &gate).await;
        gate.settle(&items[0]).await;
    }
    assert_eq!(
        row(&bench, &failed).await,
        (Status::Rejected, Some(Reason::Exhausted), 3)
    );
    assert!(sweep(&bench, &gate).await.is_empty());
}
