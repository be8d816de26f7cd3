//! What the service may answer, from a scripted server: what each answer means for the protocol.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use identity_core::claim::conformance::samples::{bare, numbered_key};
use identity_core::claim::{ClaimStore as _, Precondition, Status, StoreError};

use super::fixture::client;
use crate::DynamoStore;

/// One answer: a status and a body, or the connection closed after the request.
#[derive(Debug, Clone)]
enum Says {
    Answer(u16, String),
    Nothing,
}

impl Says {
    fn error(status: u16, code: &str) -> Self {
        let body = format!(
            r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"so it is"}}"#
        );
        Self::Answer(status, body)
    }
}

/// A server that gives these answers in turn, and the last one for ever, and counts them.
fn server(script: Vec<Says>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    thread::spawn(move || {
        for connection in listener.incoming() {
            let number = count.fetch_add(1, Ordering::SeqCst);
            answer(connection.unwrap(), &script[number.min(script.len() - 1)]);
        }
    });
    (url, asked)
}

/// Reads one request and answers it; the connection is not used again.
fn answer(connection: TcpStream, says: &Says) {
    let mut reader = BufReader::new(connection);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    if let Says::Answer(status, body) = says {
        let mut connection = reader.into_inner();
        write!(
            connection,
            "HTTP/1.1 {status} Said\r\nContent-Type: application/x-amz-json-1.0\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
    }
}

/// What a fresh claim gets from this server, and how often it asked.
async fn claimed(script: Vec<Says>) -> (Result<(), StoreError>, usize) {
    let (url, asked) = server(script);
    let store = DynamoStore::new(client(&url).await, "claims");
    let put = store
        .put(
            &numbered_key(1),
            &bare(Status::Processing, 1),
            &Precondition::Absent,
        )
        .await;
    (put.map(|_| ()), asked.load(Ordering::SeqCst))
}

/// The error and its causes, for people.
fn told(error: &StoreError) -> String {
    identity_core::text::error_chain(error)
}

#[tokio::test]
async fn a_service_in_trouble_is_unavailable_and_never_a_conflict() {
    let troubles = [
        Says::error(400, "ProvisionedThroughputExceededException"),
        Says::error(400, "ThrottlingException"),
        Says::error(400, "RequestLimitExceeded"),
        Says::error(500, "InternalServerError"),
        Says::Answer(503, String::new()),
        Says::Answer(200, "<html>".to_owned()),
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
    let throttled = Says::error(400, "ThrottlingException");
    let written = Says::Answer(200, "{}".to_owned());
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
        let (put, _) = claimed(vec![Says::error(400, code)]).await;
        let error = put.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
        let told = told(&error);
        assert!(told.contains(code) && told.contains(hint), "{code}: {told}");
    }
}

#[tokio::test]
async fn a_table_of_another_shape_is_invalid_and_not_asked_again() {
    let (put, asked) = claimed(vec![Says::error(400, "ValidationException")]).await;
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
    let (status, asked) = in_the_way(vec![Says::Answer(400, refusal)]).await;
    assert_eq!((status, asked), (Some(Status::Done), 1));
}

#[tokio::test]
async fn a_refusal_that_tells_nothing_is_followed_by_a_read() {
    let refusal = Says::error(400, "ConditionalCheckFailedException");
    let found = Says::Answer(200, format!(r#"{{"Item":{}}}"#, standing()));
    let (status, asked) = in_the_way(vec![refusal.clone(), found]).await;
    assert_eq!((status, asked), (Some(Status::Done), 2));
    // Deleted in between.
    let gone = Says::Answer(200, "{}".to_owned());
    assert_eq!(in_the_way(vec![refusal, gone]).await, (None, 2));
}

#[tokio::test]
async fn a_refusal_whose_read_fails_is_unavailable() {
    let refusal = Says::error(400, "ConditionalCheckFailedException");
    let (put, _) = claimed(vec![refusal, Says::error(500, "InternalServerError")]).await;
    assert!(
        matches!(put, Err(StoreError::Unavailable { .. })),
        "{put:?}"
    );
}

#[tokio::test]
async fn a_condition_that_no_row_can_meet_is_a_conflict_with_what_stands_there() {
    let found = Says::Answer(200, format!(r#"{{"Item":{}}}"#, standing()));
    let (url, _) = server(vec![found]);
    let store = DynamoStore::new(client(&url).await, "claims");
    let when = Precondition::Unchanged(identity_core::claim::Version("another store's".to_owned()));
    let put = store
        .put(&numbered_key(1), &bare(Status::Done, 1), &when)
        .await;
    assert!(
        matches!(put, Err(StoreError::Conflict { standing: Some(_) })),
        "{put:?}"
    );
}
