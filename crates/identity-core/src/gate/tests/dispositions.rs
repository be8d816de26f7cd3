//! The table of the gate: what is run, what is recorded, what the source is told.

use std::time::Duration;

use super::bench::{Act, Bench, LEASE, Objects, item, items, put, record};
use crate::{
    claim::{ClaimStore as _, Reason, Record, Status},
    event::Reading,
    gate::{AllowList, Disposition, NoJob, Outcome},
};

#[tokio::test(start_paused = true)]
async fn a_job_runs_once_and_its_duplicate_is_acknowledged() {
    let bench = Bench::new(&[]);
    let first = bench.gate().settle(&put("a.shp", "e1")).await;
    assert_eq!(
        first.outcome,
        Outcome::Done {
            attempt: 1,
            reason: None
        }
    );
    let second = bench.gate().settle(&put("a.shp", "e1")).await;
    assert_eq!(
        (second.outcome, second.key),
        (Outcome::Duplicate, first.key)
    );
    assert_eq!(bench.runs().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_overwrite_is_another_job() {
    let bench = Bench::new(&[]);
    bench.gate().settle(&put("a.shp", "e1")).await;
    bench.gate().settle(&put("a.shp", "e2")).await;
    assert_eq!(
        bench.runs(),
        [("etag:e1".to_owned(), 1), ("etag:e2".to_owned(), 1)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_held_duplicate_is_never_acknowledged() {
    let bench = Bench::new(&[Act::Last(Duration::from_secs(60))]);
    let (holder, other) = (bench.gate(), bench.gate());
    let event = put("a.shp", "e1");
    let held = tokio::spawn(async move { holder.settle(&event).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let settled = other.settle(&put("a.shp", "e1")).await;
    let lease_end = other
        .clock()
        .unix_millis()
        .plus(LEASE - Duration::from_secs(1));
    assert_eq!(settled.outcome, Outcome::Held { until: lease_end });
    assert!(matches!(
        settled.outcome.disposition(),
        Disposition::Retry { .. }
    ));
    assert_eq!(
        held.await.unwrap().outcome,
        Outcome::Done {
            attempt: 1,
            reason: None
        }
    );
    assert_eq!(
        other.settle(&put("a.shp", "e1")).await.outcome,
        Outcome::Duplicate
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_job_is_recorded_and_its_next_delivery_wins_at_once() {
    let bench = Bench::new(&[Act::Fail]);
    let failed = bench.gate().settle(&put("a.shp", "e1")).await;
    assert_eq!(
        failed.outcome,
        Outcome::Failed {
            attempt: 1,
            error: "exit code 1".into(),
            again: None,
        }
    );
    assert_eq!(bench.record(&failed).await.status, Status::Failed);
    let retried = bench.gate().settle(&put("a.shp", "e1")).await;
    assert_eq!(
        retried.outcome,
        Outcome::Done {
            attempt: 2,
            reason: None
        }
    );
}

#[tokio::test(start_paused = true)]
async fn a_permanent_error_is_recorded_and_acknowledged() {
    let bench = Bench::new(&[Act::Reject]);
    let settled = bench.gate().settle(&put("a.shp", "e1")).await;
    assert_eq!(settled.outcome.disposition(), Disposition::Ack);
    let row = bench.record(&settled).await;
    assert_eq!(
        (row.status, row.reason, row.expires_at),
        (Status::Rejected, Some(Reason::Permanent), None)
    );
    assert!(matches!(
        bench.gate().settle(&put("a.shp", "e1")).await.outcome,
        Outcome::Rejected { .. }
    ));
    assert_eq!(bench.runs().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn attempts_run_out() {
    let bench = Bench::new(&[Act::Fail, Act::Panic, Act::Fail]);
    for attempt in 1..=3 {
        let settled = bench.gate().settle(&put("a.shp", "e1")).await;
        assert!(matches!(settled.outcome, Outcome::Failed { attempt: got, .. } if got == attempt));
    }
    let settled = bench.gate().settle(&put("a.shp", "e1")).await;
    assert!(matches!(
        settled.outcome,
        Outcome::Rejected {
            reason: Reason::Exhausted,
            ..
        }
    ));
    assert_eq!(bench.record(&settled).await.attempt, 3);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_recorded_with_its_bytes_and_then_acknowledged() {
    let bench = Bench::new(&[]);
    let settled = bench.gate().settle(&item("not json")).await;
    assert!(matches!(
        settled.outcome,
        Outcome::Rejected {
            reason: Reason::Unreadable,
            ..
        }
    ));
    let row = bench.record(&settled).await;
    assert_eq!(
        (row.status, row.body.as_deref()),
        (Status::Rejected, Some(b"not json".as_slice()))
    );
    bench.gate().settle(&item("not json")).await;
    assert_eq!(bench.rows().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_recorded_is_not_acknowledged() {
    let bench = Bench::new(&[]);
    *bench.store.away.lock().unwrap() = true;
    for event in [item("not json"), put("a.shp", "e1")] {
        let settled = bench.gate().settle(&event).await;
        assert!(
            matches!(settled.outcome, Outcome::Unavailable { .. }),
            "{settled:?}"
        );
        assert_eq!(
            settled.outcome.disposition(),
            Disposition::Retry { not_before: None }
        );
    }
    assert_eq!(bench.runs().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn only_the_first_bytes_of_a_large_unreadable_event_are_kept() {
    let bench = Bench::new(&[]);
    let large = "x".repeat(1_000_000);
    let settled = bench.gate().settle(&item(&large)).await;
    assert_eq!(bench.record(&settled).await.body.unwrap().len(), 32 * 1024);
}

#[tokio::test(start_paused = true)]
async fn a_refused_event_is_recorded_and_not_run() {
    let bench = Bench::new(&[]);
    let event = put("bad%FF.shp", "e1");
    let settled = bench.gate().settle(&event).await;
    assert!(
        matches!(
            settled.outcome,
            Outcome::Rejected {
                reason: Reason::Refused,
                ..
            }
        ),
        "{settled:?}"
    );
    let recorded = bench.record(&settled).await;
    assert_eq!(recorded.finished_at, Some(recorded.claimed_at));
    assert_eq!(
        recorded.object.unwrap().raw_key.as_deref(),
        Some("bad%FF.shp")
    );
    let other = bench.gate().settle(&put("bad%FE.shp", "e1")).await;
    assert_ne!(other.key, settled.key, "two refused events are two records");
    let quotes = bench.gate().settle(&put("a.shp", "\\\"\\\"")).await;
    assert!(
        matches!(
            quotes.outcome,
            Outcome::Rejected {
                reason: Reason::Refused,
                ..
            }
        ),
        "{quotes:?}"
    );
    assert_eq!(bench.runs().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_container_off_the_allow_list_is_refused_without_a_question() {
    let bench = Bench {
        allow: AllowList::parse("geo").unwrap(),
        ..Bench::new(&[])
    };
    *bench.objects.lock().unwrap() = Objects::Unavailable;
    let foreign = items(&[record("evil", "a.shp", "")]).remove(0);
    let settled = bench.gate().settle(&foreign).await;
    assert!(
        matches!(
            settled.outcome,
            Outcome::Rejected {
                reason: Reason::NotAllowed,
                ..
            }
        ),
        "{settled:?}"
    );
    assert!(matches!(
        bench.gate().settle(&put("a.shp", "e1")).await.outcome,
        Outcome::Done { .. }
    ));
}

#[tokio::test(start_paused = true)]
async fn what_is_no_job_is_acknowledged_and_leaves_no_record() {
    let bench = Bench::new(&[]);
    let removed = item(
        r#"{"Records":[{"eventVersion":"2.1","eventName":"ObjectRemoved:Delete","s3":{"bucket":{"name":"geo"},"object":{"key":"a.shp"}}}]}"#,
    );
    for event in [removed, put("a.txt", "e1")] {
        let outcome = bench.gate().settle(&event).await.outcome;
        assert!(matches!(outcome, Outcome::Ignored(_)), "{outcome:?}");
        assert_eq!(outcome.disposition(), Disposition::Ack);
    }
    assert_eq!(bench.rows().await, []);
}

#[tokio::test(start_paused = true)]
async fn an_event_without_a_token_is_asked_for_once() {
    let bench = Bench::new(&[]);
    let settled = bench.gate().settle(&put("a.shp", "")).await;
    let named = bench.gate().settle(&put("a.shp", "e1")).await;
    assert_eq!(
        (named.outcome, named.key),
        (Outcome::Duplicate, settled.key)
    );
    *bench.objects.lock().unwrap() = Objects::Nothing;
    let gone = bench.gate().settle(&put("b.shp", "")).await;
    assert_eq!(gone.outcome, Outcome::Ignored(NoJob::Gone));
    *bench.objects.lock().unwrap() = Objects::Unavailable;
    let unavailable = bench.gate().settle(&put("b.shp", "")).await;
    assert!(
        matches!(unavailable.outcome, Outcome::Unavailable { ref error, .. } if error.contains("403")),
        "{unavailable:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_gone_ends_its_job() {
    let bench = Bench::new(&[Act::SourceChanged]);
    *bench.objects.lock().unwrap() = Objects::Nothing;
    let settled = bench.gate().settle(&put("a.shp", "e1")).await;
    assert_eq!(
        settled.outcome,
        Outcome::Done {
            attempt: 1,
            reason: Some(Reason::Gone)
        }
    );
}

#[tokio::test(start_paused = true)]
async fn a_superseded_job_ends_only_once_its_successor_is_done() {
    let bench = Bench::new(&[Act::SourceChanged, Act::Fail, Act::SourceChanged]);
    *bench.objects.lock().unwrap() = Objects::Hold("e2");
    let settled = bench.gate().settle(&put("a.shp", "e1")).await;
    assert!(
        matches!(settled.outcome, Outcome::Failed { attempt: 1, .. }),
        "{settled:?}"
    );
    let settled = bench.gate().settle(&put("a.shp", "e1")).await;
    assert_eq!(
        settled.outcome,
        Outcome::Done {
            attempt: 2,
            reason: Some(Reason::Superseded)
        }
    );
    assert_eq!(
        bench.record(&settled).await.error.as_deref(),
        Some("superseded by etag:e2")
    );
    let runs: Vec<_> = bench
        .runs()
        .into_iter()
        .map(|(token, attempt)| format!("{token} {attempt}"))
        .collect();
    assert_eq!(runs, ["etag:e1 1", "etag:e2 1", "etag:e1 2", "etag:e2 2"]);
    assert_eq!(
        bench.gate().settle(&put("a.shp", "e2")).await.outcome,
        Outcome::Duplicate
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_that_never_comes_to_rest_is_followed_only_so_far() {
    let bench = Bench::new(&vec![Act::SourceChanged; 20]);
    *bench.objects.lock().unwrap() = Objects::Overwritten(0);
    let settled = bench.gate().settle(&put("a.shp", "e0")).await;
    assert!(
        matches!(settled.outcome, Outcome::Failed { .. }),
        "{settled:?}"
    );
    let tokens: Vec<_> = bench.runs().into_iter().map(|(token, _)| token).collect();
    assert_eq!(tokens, ["etag:e0", "etag:e1", "etag:e2", "etag:e3"]);
    let rows = bench.rows().await;
    let told = |row: &Record| row.error.clone().unwrap_or_default();
    assert!(
        rows.iter()
            .any(|row| told(row).contains("overwritten 3 times")),
        "{rows:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_version_that_no_read_finds_though_it_is_there_is_tried_again() {
    let bench = Bench::new(&[Act::SourceChanged]);
    let settled = bench.gate().settle(&put("a.shp", "e1")).await;
    assert!(
        matches!(settled.outcome, Outcome::Failed { ref error, .. } if error.contains("another version")),
        "{settled:?}"
    );
    assert_eq!(bench.runs().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_result_is_kept_up_to_its_bound_and_beyond_it_its_length_is() {
    let most = Record::MAX_RESULT_BYTES;
    // Two more bytes are the quotes of a JSON text.
    let result = |length: usize| serde_json::Value::from("x".repeat(length - 2));
    let bench = Bench::new(&[Act::Tell(result(most)), Act::Tell(result(most + 1))]);
    let gate = bench.gate();
    let mut kept = Vec::new();
    for key in ["a.shp", "b.shp", "c.shp"] {
        let settled = gate.settle(&put(key, "e1")).await;
        kept.push(bench.record(&settled).await.result);
    }
    assert_eq!(kept[0], Some(result(most).to_string()));
    let omitted: serde_json::Value = serde_json::from_str(kept[1].as_ref().unwrap()).unwrap();
    let told = omitted["omitted"].as_str().unwrap();
    assert!(
        told.contains("16385 bytes") && told.contains("16384"),
        "{told}"
    );
    assert_eq!(kept[2], None, "a job that tells nothing");
}

#[tokio::test(start_paused = true)]
async fn another_job_in_a_gates_place_runs_and_the_gates_own_does_not() {
    let (bench, other) = (Bench::new(&[]), Bench::new(&[]));
    let settled = bench
        .gate()
        .with_job(other.job.clone())
        .settle(&put("a.shp", "e1"))
        .await;
    assert!(
        matches!(settled.outcome, Outcome::Done { .. }),
        "{settled:?}"
    );
    assert_eq!((bench.runs().len(), other.runs().len()), (0, 1));
}

const REFERENCE: &str = "name = \"n\"\nversion = \"1\"\nscheme = \"reference\"\n";

#[tokio::test(start_paused = true)]
async fn what_the_scheme_means_to_fold_is_one_job_and_anything_else_is_told_apart() {
    let bench = Bench {
        contract: REFERENCE,
        ..Bench::new(&[])
    };
    let gate = bench.gate();
    let first = gate.settle(&put("a/b.shp", "e1")).await;
    let folded = gate.settle(&put("a//b.shp", "e1")).await;
    assert_eq!(
        (folded.outcome, folded.key),
        (Outcome::Duplicate, first.key.clone())
    );

    // Two pipelines, one store: the reference scheme does not hash the pipeline's name.
    let other = Bench {
        contract: "name = \"m\"\nversion = \"1\"\nscheme = \"reference\"\n",
        store: bench.store.clone(),
        entropy: bench.entropy.clone(),
        ..Bench::new(&[])
    };
    for _ in 0..2 {
        let collapsed = other.gate().settle(&put("a/b.shp", "e1")).await;
        assert!(
            matches!(
                collapsed.outcome,
                Outcome::Rejected {
                    reason: Reason::Collapsed,
                    ..
                }
            ),
            "{collapsed:?}"
        );
        assert_ne!(collapsed.key, first.key);
        let row = other.record(&collapsed).await;
        assert_eq!(row.object.unwrap().to_string(), "s3://geo/a/b.shp");
        let told = row.error.unwrap();
        assert!(told.contains("pipeline name differ"), "{told}");
    }
    assert_eq!(bench.rows().await.len(), 2);
    let row = bench
        .store
        .rows
        .get(first.key.as_ref().unwrap())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        row.record.status,
        Status::Done,
        "the job that stood there first is left alone"
    );
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_kept_whole_or_not_acknowledged() {
    let bench = Bench::new(&[]);
    let most = crate::claim::Record::MAX_BODY_BYTES;
    for (length, whole) in [(most - 1, true), (most, false), (1 << 20, false)] {
        let body = format!("{{{}", " ".repeat(length - 1));
        for _ in 0..2 {
            let settled = bench.gate().settle(&item(&body)).await;
            let acknowledged = settled.outcome.disposition() == Disposition::Ack;
            assert_eq!(acknowledged, whole, "{length}: {settled:?}");
            assert_eq!(settled.outcome.reason(), Some("unreadable"));
            let record = bench.record(&settled).await;
            assert_eq!(record.status, Status::Rejected);
            assert_eq!(record.is_cut(), !whole);
            let kept = record.body.unwrap();
            assert_eq!(kept, body.as_bytes()[..length.min(most)]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_too_long_for_a_claim_is_kept_as_its_event() {
    let bench = Bench::new(&[]);
    let key = format!("{}.shp", "k".repeat(13_000));
    let settled = bench.gate().settle(&put(&key, "e1")).await;
    assert_eq!(settled.outcome.reason(), Some("unreadable"));
    assert_eq!(settled.outcome.disposition(), Disposition::Ack);
    let body = String::from_utf8(bench.record(&settled).await.body.unwrap()).unwrap();
    let Reading::Event(event) = &item(&body).reading else {
        panic!("{body}");
    };
    assert_eq!(event.address.key.display(), key);
    assert_eq!(event.token.as_ref().unwrap().to_string(), "etag:e1");
}

#[tokio::test(start_paused = true)]
async fn a_name_that_no_object_has_is_recorded_and_its_event_kept_by_its_source() {
    let bench = Bench::new(&[]);
    let settled = bench.gate().settle(&put(&"k".repeat(500_000), "e1")).await;
    let Outcome::Unkept { reason, error } = &settled.outcome else {
        panic!("{settled:?}")
    };
    assert_eq!(*reason, Reason::Unreadable);
    assert!(error.len() < 200, "{error}");
    assert_eq!(settled.uri, None);
    let body = bench.record(&settled).await.body.unwrap();
    assert_eq!(body.len(), crate::claim::Record::MAX_BODY_BYTES);
    // As long as one may be.
    let key = format!("{}.shp", "k".repeat(4_092));
    let longest = bench.gate().settle(&put(&key, "e1")).await;
    assert!(
        matches!(longest.outcome, Outcome::Done { .. }),
        "{longest:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn equal_events_of_a_batch_are_claimed_once_and_counted_once() {
    let bench = Bench::new(&[Act::Last(Duration::from_secs(5)), Act::Fail]);
    let batch = items(&[record("geo", "a.shp", "e1"), record("geo", "a.shp", "e1")]);
    let answers = bench.gate().settle_all(&batch, 8).await;
    assert_eq!(bench.runs().len(), 1);
    let outcomes: Vec<_> = answers
        .iter()
        .flat_map(|answer| &answer.settled)
        .map(|one| one.outcome.clone())
        .collect();
    assert_eq!(
        outcomes,
        vec![
            Outcome::Done {
                attempt: 1,
                reason: None
            },
            Outcome::Duplicate
        ]
    );
    assert!(
        answers
            .iter()
            .all(|answer| answer.disposition == Disposition::Ack)
    );
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_answered_item_by_item() {
    let message = |id: &str, body: &str| {
        format!(
            r#"{{"messageId":"{id}","eventSource":"aws:sqs","body":{}}}"#,
            serde_json::Value::from(body)
        )
    };
    let good = |key: &str| format!(r#"{{"Records":[{}]}}"#, record("geo", key, "e1"));
    let test_event = r#"{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"geo"}"#;
    let two = format!(
        r#"{{"Records":[{},{}]}}"#,
        record("geo", "c.shp", "e1"),
        record("geo", "d.shp", "e1")
    );
    let bodies = [
        good("a.shp"),
        test_event.to_owned(),
        "garbage".to_owned(),
        good("b.shp"),
        two,
    ];
    let messages: Vec<_> = bodies
        .iter()
        .enumerate()
        .map(|(at, body)| message(&at.to_string(), body))
        .collect();
    let bench = Bench::new(&[Act::Succeed, Act::Fail]);
    let answers = bench.gate().settle_all(&items(&messages), 1).await;
    let told: Vec<_> = answers
        .iter()
        .map(|answer| {
            (
                answer.origin.message_id.clone().unwrap(),
                answer.disposition == Disposition::Ack,
                answer.settled.len(),
            )
        })
        .collect();
    let expected = [
        ("0", true, 1),
        ("1", true, 1),
        ("2", true, 1),
        ("3", false, 1),
        ("4", true, 2),
    ];
    assert_eq!(
        told,
        expected.map(|(id, acknowledged, events)| (id.to_owned(), acknowledged, events))
    );
}

#[tokio::test(start_paused = true)]
async fn two_objects_of_a_batch_under_one_id_are_told_apart() {
    let bench = Bench {
        contract: REFERENCE,
        ..Bench::new(&[])
    };
    let batch = items(&[
        record("geo", "bad%FF.shp", "e1"),
        record("geo", "bad%FE.shp", "e1"),
        record("geo", "bad%FF.shp", "e1"),
    ]);
    let answers = bench.gate().settle_all(&batch, 8).await;
    let outcomes: Vec<_> = answers
        .iter()
        .flat_map(|answer| &answer.settled)
        .map(|settled| settled.outcome.as_str())
        .collect();
    assert_eq!(outcomes, ["done", "rejected", "duplicate"]);
    assert_eq!(bench.rows().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_token_of_the_scheme_is_refused_and_not_gone() {
    let bench = Bench {
        contract: "name = \"n\"\nversion = \"1\"\nscheme = \"ingest\"\n",
        ..Bench::new(&[])
    };
    *bench.objects.lock().unwrap() = Objects::HoldWithoutEtag("v1");
    let settled = bench.gate().settle(&put("a.shp", "")).await;
    assert!(
        matches!(
            settled.outcome,
            Outcome::Rejected {
                reason: Reason::Refused,
                ..
            }
        ),
        "{settled:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_that_reads_what_cannot_be_read_here_is_not_claimed() {
    let bench = Bench::new(&[]);
    *bench.objects.lock().unwrap() = Objects::NotOurs;
    let settled = bench.gate().settle(&put("a.shp", "e1")).await;
    assert!(
        matches!(settled.outcome, Outcome::Unavailable { .. }),
        "{settled:?}"
    );
    assert_eq!(bench.rows().await, []);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_not_whole_yet_is_recorded_as_waiting_and_then_acknowledged() {
    let bench = Bench::new(&[]);
    let created = item(
        r#"{"eventType":"Microsoft.Storage.BlobCreated","subject":"/blobServices/default/containers/geo/blobs/a.shp","data":{"api":"CreateFile","contentLength":0,"eTag":"0x1","url":"https://acct.blob.core.windows.net/geo/a.shp"}}"#,
    );
    for _ in 0..2 {
        let settled = bench.gate().settle(&created).await;
        assert_eq!(
            settled.outcome.disposition(),
            Disposition::Ack,
            "{settled:?}"
        );
        let row = bench.record(&settled).await;
        assert_eq!((row.status, row.attempt), (Status::Waiting, 0));
        assert_eq!((row.reason, row.finished_at), (None, None), "no end");
        let until = row.waiting_until.unwrap();
        assert_eq!(settled.outcome, Outcome::Waiting { until });
        assert_eq!(row.object.unwrap().to_string(), "azblob://acct/geo/a.shp");
    }
    *bench.store.away.lock().unwrap() = true;
    let settled = bench.gate().settle(&created).await;
    assert!(
        matches!(settled.outcome, Outcome::Unavailable { .. }),
        "{settled:?}"
    );
    assert_eq!((bench.rows().await.len(), bench.runs().len()), (1, 0));
    *bench.store.away.lock().unwrap() = false;
    let key = bench.gate().settle(&created).await.key.unwrap();
    bench.store.rows.flip_status(&key, Status::Done);
    let settled = bench.gate().settle(&created).await;
    assert_eq!(settled.outcome, Outcome::Duplicate, "another program's end");
}
