//! What the service may answer, from a scripted server: what each answer means for the protocol.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_sdk_dynamodb::Client;
use identity_core::claim::conformance::samples::{bare, numbered_key};
use identity_core::claim::{ClaimStore as _, Precondition, Status, StoreError};
use identity_core::text::error_chain;

use crate::DynamoStore;
use crate::testing::{Says, configuration, server};

/// An error as DynamoDB answers it.
fn error(status: u16, code: &str) -> Says {
    Says::answer(
        status,
        format!(r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"so it is"}}"#),
    )
}

/// The claims in a table that answers so, and how often it was asked.
async fn store(script: Vec<Says>) -> (DynamoStore, Arc<AtomicUsize>) {
    let (url, asked) = server(script);
    let client = Client::new(&configuration(&url).await);
    (DynamoStore::new(client, "claims"), asked)
}

/// What a fresh claim gets from this server, and how often it asked.
async fn claimed(script: Vec<Says>) -> (Result<(), StoreError>, usize) {
    let (store, asked) = store(script).await;
    let put = store
        .put(
            &numbered_key(1),
            &bare(Status::Processing, 1),
            &Precondition::Absent,
        )
        .await;
    (put.map(|_| ()), asked.load(Ordering::SeqCst))
}

#[tokio::test]
async fn a_service_in_trouble_is_unavailable_and_never_a_conflict() {
    let troubles = [
        error(400, "ProvisionedThroughputExceededException"),
        error(400, "ThrottlingException"),
        error(400, "RequestLimitExceeded"),
        error(500, "InternalServerError"),
        Says::answer(503, ""),
        Says::answer(200, "<html>"),
        Says::Nothing,
    ];
    for trouble in troubles {
        let (put, _) = claimed(vec![trouble.clone()]).await;
        assert!(
            matches!(put, Err(StoreError::Unavailable { .. })),
            "{trouble:?}: {put:?}"
        );
    }
}

#[tokio::test]
async fn a_service_in_trouble_is_asked_again_before_it_is_given_up() {
    let throttled = error(400, "ThrottlingException");
    let written = Says::answer(200, "{}");
    let (put, asked) = claimed(vec![throttled.clone(), throttled.clone(), written]).await;
    assert!(put.is_ok(), "{put:?}");
    assert_eq!(asked, 3);
    let (put, asked) = claimed(vec![throttled]).await;
    assert!(put.is_err());
    assert_eq!(asked, 3);
}

#[tokio::test]
async fn what_a_person_must_mend_is_said() {
    for (code, hint) in [
        ("AccessDeniedException", "dynamodb:PutItem"),
        ("ResourceNotFoundException", "claims"),
        ("UnrecognizedClientException", "credentials"),
        ("ExpiredTokenException", "credentials"),
    ] {
        let (put, _) = claimed(vec![error(400, code)]).await;
        let refused = put.unwrap_err();
        assert!(
            matches!(refused, StoreError::Unavailable { .. }),
            "{refused:?}"
        );
        let told = error_chain(&refused);
        assert!(told.contains(code) && told.contains(hint), "{code}: {told}");
    }
}

#[tokio::test]
async fn a_table_of_another_shape_is_invalid_and_not_asked_again() {
    let (put, asked) = claimed(vec![error(400, "ValidationException")]).await;
    assert!(matches!(put, Err(StoreError::Invalid { .. })), "{put:?}");
    assert_eq!(asked, 1);
}

const STANDING: &str = r#"{"job_id":{"S":"KEY"},"status":{"S":"done"},"claimed_at":{"N":"5"}}"#;

fn standing() -> String {
    STANDING.replace("KEY", numbered_key(1).as_str())
}

/// The status of what stands in the way, and how often the server was asked.
async fn in_the_way(script: Vec<Says>) -> (Option<Status>, usize) {
    let (put, asked) = claimed(script).await;
    match put {
        Err(StoreError::Conflict { standing }) => (standing.map(|row| row.record.status), asked),
        other => panic!("expected a conflict, got {other:?}"),
    }
}

#[tokio::test]
async fn a_refusal_tells_what_stands_there_and_costs_no_read() {
    let refusal = format!(
        r#"{{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"no","Item":{}}}"#,
        standing()
    );
    let (status, asked) = in_the_way(vec![Says::answer(400, refusal)]).await;
    assert_eq!((status, asked), (Some(Status::Done), 1));
}

#[tokio::test]
async fn a_refusal_that_tells_nothing_is_a_conflict_and_costs_no_read_either() {
    let refusal = error(400, "ConditionalCheckFailedException");
    assert_eq!(in_the_way(vec![refusal]).await, (None, 1));
}

#[tokio::test]
async fn a_condition_that_no_row_can_meet_is_a_conflict_and_nothing_is_asked() {
    let (store, asked) = store(vec![Says::Nothing]).await;
    let when = Precondition::Unchanged(identity_core::claim::Version("another store's".to_owned()));
    let put = store
        .put(&numbered_key(1), &bare(Status::Done, 1), &when)
        .await;
    assert!(
        matches!(put, Err(StoreError::Conflict { standing: None })),
        "{put:?}"
    );
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}
