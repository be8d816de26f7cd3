//! What envelopes leave open, and the gate settles: unconfirmed events, handshakes, large batches.

use super::bench::{Act, Bench, Objects, STRICT, item, items, record};
use crate::{
    claim::{Reason, Status},
    event::Ignored,
    gate::{Disposition, NoJob, Outcome},
    identity::Scheme,
};

/// A Cloud Storage resource, of which nobody says what happened to it.
fn unconfirmed(key: &str, generation: &str) -> crate::event::Item {
    item(&format!(
        r#"{{"kind":"storage#object","bucket":"geo","name":"{key}","generation":"{generation}"}}"#
    ))
}

fn removed() -> Outcome {
    Outcome::Ignored(NoJob::Kind(Ignored::Removed))
}

#[tokio::test(start_paused = true)]
async fn an_unconfirmed_event_is_a_job_only_if_the_store_holds_that_very_version() {
    let bench = Bench::new(&[]);
    *bench.objects.lock().unwrap() = Objects::Generation("7");
    let settled = bench.gate().settle(&unconfirmed("a.shp", "7")).await;
    assert!(
        matches!(settled.outcome, Outcome::Done { attempt: 1, .. }),
        "{settled:?}"
    );
    assert_eq!(bench.runs(), [("generation:7".to_owned(), 1)]);
    let again = bench.gate().settle(&unconfirmed("a.shp", "7")).await;
    assert_eq!(again.outcome, Outcome::Duplicate);
}

#[tokio::test(start_paused = true)]
async fn an_unconfirmed_event_whose_version_is_gone_is_a_removal_and_leaves_no_record() {
    let bench = Bench::new(&[]);
    for now in [
        Objects::Nothing,
        Objects::Generation("8"),
        Objects::Hold("7"),
    ] {
        *bench.objects.lock().unwrap() = now;
        let settled = bench.gate().settle(&unconfirmed("a.shp", "7")).await;
        assert_eq!(settled.outcome, removed());
        assert_eq!(settled.outcome.disposition(), Disposition::Ack);
        assert_eq!(settled.uri.as_deref(), Some("gs://geo/a.shp"));
    }
    assert_eq!(bench.rows().await, []);
    assert_eq!(bench.runs().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_unconfirmed_event_waits_for_a_store_that_cannot_say() {
    let bench = Bench::new(&[]);
    *bench.objects.lock().unwrap() = Objects::Unavailable;
    let settled = bench.gate().settle(&unconfirmed("a.shp", "7")).await;
    assert!(
        matches!(settled.outcome, Outcome::Unavailable { .. }),
        "{settled:?}"
    );
    assert_eq!(bench.rows().await, []);
    // What is not selected is not asked for.
    let other = bench.gate().settle(&unconfirmed("a.txt", "7")).await;
    assert_eq!(other.outcome, Outcome::Ignored(NoJob::NotSelected));
}

#[tokio::test(start_paused = true)]
async fn an_unconfirmed_event_without_a_version_is_asked_for_one() {
    let bench = Bench::new(&[]);
    let event = item(r#"{"kind":"storage#object","bucket":"geo","name":"a.shp"}"#);
    *bench.objects.lock().unwrap() = Objects::Nothing;
    assert_eq!(bench.gate().settle(&event).await.outcome, removed());
    *bench.objects.lock().unwrap() = Objects::Generation("7");
    bench.gate().settle(&event).await;
    assert_eq!(bench.runs(), [("generation:7".to_owned(), 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_handshake_is_no_job() {
    let bench = Bench::new(&[]);
    let event = item(
        r#"[{"eventType":"Microsoft.EventGrid.SubscriptionValidationEvent","data":{"validationCode":"c"}}]"#,
    );
    let outcome = bench.gate().settle(&event).await.outcome;
    assert_eq!(outcome, Outcome::Ignored(NoJob::Kind(Ignored::Handshake)));
    assert_eq!(bench.rows().await, []);
}

const BLOB: &str = r#"{"eventType":"Microsoft.Storage.BlobCreated",
    "topic":"/subscriptions/s/storageAccounts/acct","subject":"/blobServices/default/containers/c/blobs/a.shp",
    "data":{"api":"PutBlob","eTag":"e1","url":"https://[x/c/a.shp"}}"#;

#[tokio::test(start_paused = true)]
async fn a_url_that_python_refuses_is_refused_under_reference_alone() {
    for scheme in [Scheme::Reference, Scheme::Strict] {
        let bench = Bench {
            contract: match scheme {
                Scheme::Reference => "name = \"n\"\nversion = \"1\"\nscheme = \"reference\"\n",
                _ => STRICT,
            },
            ..Bench::new(&[])
        };
        let settled = bench.gate().settle(&item(BLOB)).await;
        let refused = matches!(
            settled.outcome,
            Outcome::Rejected {
                reason: Reason::Refused,
                ..
            }
        );
        assert_eq!(refused, scheme == Scheme::Reference, "{settled:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_ten_thousand_messages_the_one_that_cannot_be_read_is_recorded_and_none_is_lost() {
    const COUNT: usize = 10_000;
    const BAD: usize = 6_789;
    let messages: Vec<String> = (0..COUNT)
        .map(|index| {
            let body = if index == BAD {
                "no event".to_owned()
            } else {
                let key = format!("{index}.shp");
                format!(r#"{{"Records":[{}]}}"#, record("geo", &key, "e1"))
            };
            format!(
                r#"{{"messageId":"{index}","eventSource":"aws:sqs","body":{}}}"#,
                serde_json::Value::from(body)
            )
        })
        .collect();
    let bench = Bench::new(&[Act::Succeed]);
    let answers = bench.gate().settle_all(&items(&messages), 16).await;

    assert_eq!(answers.len(), COUNT);
    for (index, answer) in answers.iter().enumerate() {
        assert_eq!(answer.origin.message_id, Some(index.to_string()));
        assert_eq!(answer.disposition, Disposition::Ack);
        let [settled] = &answer.settled[..] else {
            panic!("{answer:?}");
        };
        if index == BAD {
            let row = bench.record(settled).await;
            assert_eq!(
                (row.status, row.reason),
                (Status::Rejected, Some(Reason::Unreadable))
            );
            assert_eq!(row.body.as_deref(), Some(b"no event".as_slice()));
        } else {
            assert!(
                matches!(settled.outcome, Outcome::Done { .. }),
                "{settled:?}"
            );
            assert_eq!(bench.record(settled).await.status, Status::Done);
        }
    }
    assert_eq!(bench.runs().len(), COUNT - 1);
    let keys: std::collections::BTreeSet<_> = answers
        .iter()
        .map(|answer| answer.settled[0].key.clone().unwrap())
        .collect();
    assert_eq!(keys.len(), COUNT, "9,999 jobs and one record");
}

/// A put of that many bytes, if the event tells.
fn folder(key: &str, size: Option<u64>) -> crate::event::Item {
    let record = record("geo", key, "e1");
    let size = size.map_or(String::new(), |size| format!(r#","size":{size}"#));
    item(&record.replace(r#""eTag":"e1""#, &format!(r#""eTag":"e1"{size}"#)))
}

#[tokio::test(start_paused = true)]
async fn the_empty_object_of_a_folder_is_no_job_unless_it_is_wanted() {
    let mut bench = Bench::new(&[]);
    bench.contract = "name = 'n'\nversion = '1'\nscheme = 'strict'";
    let no_job = Outcome::Ignored(NoJob::Folder);
    for key in ["in/", "in/sub_$folder$"] {
        assert_eq!(
            bench.gate().settle(&folder(key, Some(0))).await.outcome,
            no_job
        );
        // The store is asked where the event does not tell.
        *bench.objects.lock().unwrap() = Objects::Empty("e1");
        assert_eq!(
            bench.gate().settle(&folder(key, None)).await.outcome,
            no_job
        );
    }
    *bench.objects.lock().unwrap() = Objects::Unavailable;
    let settled = bench.gate().settle(&folder("in/", None)).await;
    assert_eq!(settled.outcome.as_str(), "unavailable");
    assert_eq!(bench.rows().await, []);

    *bench.objects.lock().unwrap() = Objects::Hold("e1");
    for event in [
        folder("a/", None),
        folder("b/", Some(1)),
        folder("c.shp", Some(0)),
    ] {
        assert_eq!(bench.gate().settle(&event).await.outcome.as_str(), "done");
    }
    bench.contract = "name = 'n'\nversion = '1'\nscheme = 'strict'\n[select]\nfolders = true";
    let wanted = bench.gate().settle(&folder("in/", Some(0))).await;
    assert_eq!(wanted.outcome.as_str(), "done");
}
