//! Writes that wait together: one commit for all, an answer for each, and no answer before it.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use identity_core::claim::{ClaimKey, ClaimStore, Precondition, Status, StoreError, Version};
use rusqlite::Connection;
use tokio::task::JoinSet;

use crate::cases::{Testbed, chain};
use crate::sqlite::SqliteStore;
use crate::sqlite::fixture::Fixture;
use identity_core::claim::conformance::samples::{bare, numbered_key};

type Written = Result<Version, StoreError>;

async fn put(store: Arc<SqliteStore>, key: ClaimKey, write: u32) -> Written {
    let record = bare(Status::Processing, write);
    store.put(&key, &record, &Precondition::Absent).await
}

/// Calls this at each commit of the store's writer, before anything of it is in the file. `false` fails the commit.
async fn at_each_commit(store: &SqliteStore, mut hook: impl FnMut() -> bool + Send + 'static) {
    let hooked = store.writer.task(move |slot| {
        let writer = slot.as_mut().unwrap();
        writer.commit_hook(Some(move || !hook())).unwrap();
    });
    hooked.await.unwrap();
}

async fn commits(store: &SqliteStore) -> Arc<AtomicUsize> {
    let commits = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&commits);
    at_each_commit(store, move || {
        counted.fetch_add(1, Ordering::SeqCst);
        true
    })
    .await;
    commits
}

/// Another program holds the write lock, so that those who write wait together.
fn locked(fixture: &Fixture) -> Connection {
    let foreign = fixture.foreign();
    foreign.execute_batch("BEGIN IMMEDIATE").unwrap();
    foreign
}

/// Starts one write for each of these keys, and returns once all of them wait.
async fn started(
    store: &Arc<SqliteStore>,
    keys: impl IntoIterator<Item = u64>,
) -> JoinSet<(u64, Written)> {
    let mut writers = JoinSet::new();
    for number in keys {
        let store = Arc::clone(store);
        let write = u32::try_from(writers.len()).unwrap();
        writers.spawn(async move { (number, put(store, numbered_key(number), write).await) });
    }
    while store.writer.waiting() < writers.len() {
        tokio::task::yield_now().await;
    }
    writers
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_writers_are_committed_at_once_and_each_gets_its_own_answer() {
    let fixture = Fixture::new().await;
    let commits = commits(&fixture.store).await;
    let foreign = locked(&fixture);
    // Each key twice: one of the two is in the way of the other, in the same transaction.
    let writers = started(&fixture.store, (0..100).map(|writer| writer / 2)).await;
    assert_eq!(commits.load(Ordering::SeqCst), 0);
    foreign.execute_batch("ROLLBACK").unwrap();

    let (mut won, mut lost) = (vec![], vec![]);
    for (number, written) in writers.join_all().await {
        match written {
            Ok(version) => won.push((number, version)),
            Err(StoreError::Conflict { .. }) => lost.push(number),
            Err(error) => panic!("{error:?}"),
        }
    }
    won.sort_by_key(|(number, _)| *number);
    lost.sort_unstable();
    let numbers: Vec<_> = won.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (0..50).collect::<Vec<_>>());
    assert_eq!(lost, numbers);
    for (number, version) in won {
        let standing = fixture.store.get(&numbered_key(number)).await.unwrap();
        assert_eq!(standing.unwrap().version, version);
    }
    assert_eq!(commits.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn nobody_is_answered_before_the_commit() {
    let fixture = Fixture::new().await;
    let (begin, begun) = mpsc::channel();
    let (end, ended) = mpsc::channel();
    at_each_commit(&fixture.store, move || {
        begin.send(()).unwrap();
        ended.recv().unwrap();
        true
    })
    .await;
    let foreign = locked(&fixture);
    let mut writers = started(&fixture.store, 0..3).await;
    foreign.execute_batch("ROLLBACK").unwrap();
    // In the hook the commit has begun, and nothing of it is in the file.
    while begun.try_recv().is_err() {
        tokio::task::yield_now().await;
    }
    for _ in 0..1000 {
        // Whoever was answered has had the time to say so.
        tokio::task::yield_now().await;
    }
    let answered = writers.try_join_next();
    assert!(answered.is_none(), "{answered:?}");
    assert_eq!(fixture.store.get(&numbered_key(0)).await.unwrap(), None);
    end.send(()).unwrap();
    for (number, written) in writers.join_all().await {
        let version = written.unwrap();
        let standing = fixture.another().await.get(&numbered_key(number)).await;
        assert_eq!(standing.unwrap().unwrap().version, version);
    }
}

#[tokio::test]
async fn a_commit_that_fails_fails_all_of_them_and_none_as_a_conflict() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    let commits = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&commits);
    at_each_commit(store, move || counted.fetch_add(1, Ordering::SeqCst) > 0).await;
    let foreign = locked(&fixture);
    let writers = started(store, [0, 1, 2, 0]).await;
    foreign.execute_batch("ROLLBACK").unwrap();
    for (_, written) in writers.join_all().await {
        let error = written.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
        let text = format!("{store}: writing a claim failed: (code: 531) constraint failed");
        assert_eq!(chain(&error), text);
    }
    assert_eq!(commits.load(Ordering::SeqCst), 1);
    for number in 0..3 {
        assert_eq!(store.get(&numbered_key(number)).await.unwrap(), None);
        put(Arc::clone(store), numbered_key(number), 1)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_statement_that_fails_is_undone_alone() {
    // One error that leaves the transaction as it is, and one that ends it with all that was written in it.
    for raise in ["ABORT", "ROLLBACK"] {
        let fixture = Fixture::new().await;
        let store = &fixture.store;
        let refused = numbered_key(2);
        fixture
            .execute(&format!(
                "CREATE TRIGGER refuse BEFORE INSERT ON firstclaim_claims WHEN NEW.key = '{refused}'
                 BEGIN SELECT RAISE({raise}, 'refused'); END"
            ))
            .await;
        let commits = commits(store).await;
        let foreign = locked(&fixture);
        let writers = started(store, [0, 1, 2, 3, 2, 4]).await;
        foreign.execute_batch("ROLLBACK").unwrap();
        for (number, written) in writers.join_all().await {
            if number == 2 {
                let text = format!("{store}: writing a claim failed: (code: 1811) refused");
                assert_eq!(chain(&written.unwrap_err()), text);
            } else {
                let standing = store.get(&numbered_key(number)).await.unwrap().unwrap();
                assert_eq!(standing.version, written.unwrap());
            }
        }
        assert_eq!(store.get(&refused).await.unwrap(), None);
        if raise == "ABORT" {
            // After the other the connection is another one, which does not count.
            assert_eq!(commits.load(Ordering::SeqCst), 1);
        }
    }
}

/// Polls a future so often at most, and drops it then. Whether it ended.
async fn polled<F: Future>(times: usize, future: F) -> bool {
    let (mut future, mut polled) = (pin!(future), 0);
    poll_fn(|context| {
        polled += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if polled >= times => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

#[tokio::test]
async fn a_caller_that_goes_away_at_any_moment_takes_no_other_write_with_it() {
    let fixture = Fixture::new().await;
    let (store, mut ends) = (&fixture.store, [0, 0]);
    for number in 0..60 {
        let (leaves, stays) = (numbered_key(2 * number), numbered_key(2 * number + 1));
        let stays = tokio::spawn(put(Arc::clone(store), stays, 1));
        let times = usize::try_from(number % 6).unwrap() + 1;
        let ended = polled(times, put(Arc::clone(store), leaves.clone(), 1)).await;
        ends[usize::from(ended)] += 1;
        stays.await.unwrap().unwrap();
        // Nobody holds the lock, and the next write is not hindered.
        let nothing = "DELETE FROM firstclaim_claims WHERE key < '0'";
        assert_eq!(fixture.execute(nothing).await, 0);
        match put(Arc::clone(store), leaves, 2).await {
            Ok(_) => assert!(!ended),
            Err(StoreError::Conflict { standing }) => {
                assert_eq!(standing.unwrap().record, bare(Status::Processing, 1));
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    assert!(ends[0] > 0 && ends[1] > 0, "{ends:?}");
}

#[tokio::test]
async fn a_write_whose_turn_has_not_come_is_not_written_once_its_caller_is_gone() {
    let fixture = Fixture::new().await;
    let foreign = locked(&fixture);
    let mut writers = started(&fixture.store, 0..10).await;
    writers.abort_all();
    while writers.join_next().await.is_some() {}
    foreign.execute_batch("ROLLBACK").unwrap();
    put(Arc::clone(&fixture.store), numbered_key(10), 1)
        .await
        .unwrap();
    for number in 0..10 {
        assert_eq!(
            fixture.store.get(&numbered_key(number)).await.unwrap(),
            None
        );
    }
}

#[test]
fn a_runtime_that_is_shut_down_under_a_write_leaves_the_store_to_another() {
    let runtime = || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap()
    };
    let (first, second) = (runtime(), runtime());
    let fixture = second.block_on(Fixture::new());
    let store = &fixture.store;
    let foreign = locked(&fixture);
    let waits = first.block_on(started(store, [1]));
    let mut stays = pin!(put(Arc::clone(store), numbered_key(2), 1));
    second.block_on(async {
        while store.writer.waiting() < 2 {
            let polled = stays.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    drop((waits, first));
    foreign.execute_batch("ROLLBACK").unwrap();
    second.block_on(async {
        stays.await.unwrap();
        assert_eq!(store.get(&numbered_key(1)).await.unwrap(), None);
    });
}

#[tokio::test]
async fn a_thread_that_ends_leaves_nobody_waiting() {
    let fixture = Fixture::new().await;
    let store = &fixture.store;
    let ended = store.writer.task(|_| panic!("it ends here")).await;
    ended.unwrap_err();
    for number in 0..2 {
        let error = put(Arc::clone(store), numbered_key(number), 1).await;
        let text =
            format!("{store}: writing a claim failed: the thread that uses the file has ended");
        assert_eq!(chain(&error.unwrap_err()), text);
    }
}
