//! How long a queue hides what is held elsewhere.

use std::{
    io::{BufReader, Write as _},
    net::TcpListener,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::Value;
use tests::{
    clouds::{
        Cloud as _,
        aws::{Aws, Function, failures, metrics},
    },
    eventually,
    runtime_api::{Pending, Request, deadline_in},
};

use super::delivery;
use crate::scenarios::{WAITS, go};

/// Hands a delivery to a function, and waits until its job runs.
fn running(cloud: &Aws, function: &Function, delivery: &str) -> Pending {
    let deadline = deadline_in(Duration::from_secs(120));
    let pending = function.api.send(delivery, deadline);
    eventually("the job runs", || {
        !cloud.folder().lines("started").is_empty()
    });
    pending
}

/// A queue service that accepts everything and notes what is asked of it.
struct RecordingQueue {
    url: String,
    calls: Arc<Mutex<Vec<Value>>>,
}

impl RecordingQueue {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let calls = Arc::new(Mutex::new(Vec::new()));
        let noted = calls.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let (mut connection, noted) = (connection.unwrap(), noted.clone());
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(connection.try_clone().unwrap());
                    while let Some(request) = Request::read(&mut reader) {
                        noted
                            .lock()
                            .unwrap()
                            .push(serde_json::from_slice(&request.body).unwrap());
                        let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: 2\r\n\r\n{}";
                        connection.write_all(answer.as_bytes()).unwrap();
                    }
                });
            }
        });
        Self { url, calls }
    }
}

#[test]
fn a_held_message_is_hidden_for_as_long_as_the_lease_lasts() {
    let queue = RecordingQueue::start();
    let cloud = Aws::new(WAITS);
    let settings = [
        ("FIRSTCLAIM_LEASE_SECONDS", "40"),
        ("AWS_ENDPOINT_URL_SQS", queue.url.as_str()),
    ];
    let (holder, other) = (cloud.handler(&settings), cloud.handler(&settings));
    let delivery = delivery(&cloud);
    let held = running(&cloud, &holder, &delivery);
    assert_eq!(failures(&other.api.invoke(&delivery)), ["m"]);
    let calls = queue.calls.lock().unwrap().clone();
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert_eq!(calls[0]["ReceiptHandle"], "receipt of m");
    assert!(
        calls[0]["QueueUrl"]
            .as_str()
            .unwrap()
            .ends_with(&cloud.names.bucket),
        "{calls:?}"
    );
    let hidden = calls[0]["VisibilityTimeout"].as_u64().unwrap();
    assert!((1..=40).contains(&hidden), "{calls:?}");
    go(&cloud);
    assert_eq!(failures(&held.answer()), [""; 0]);
    assert_eq!(metrics(&other)[0]["held"], 1);
}

#[test]
fn a_held_message_comes_again_even_if_it_cannot_be_hidden() {
    let cloud = Aws::new(WAITS);
    let (holder, other) = (cloud.handler(&[]), cloud.handler(&[]));
    let delivery = delivery(&cloud);
    let held = running(&cloud, &holder, &delivery);
    // moto knows no such receipt.
    assert_eq!(failures(&other.api.invoke(&delivery)), ["m"]);
    assert!(other.log().contains("was not changed"), "{}", other.log());
    go(&cloud);
    assert_eq!(failures(&held.answer()), [""; 0]);
}

#[test]
fn a_queue_that_does_not_answer_does_not_take_the_answers_time() {
    // It takes connections, and that is all.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let cloud = Aws::new(WAITS);
    let holder = cloud.handler(&[]);
    let other = cloud.handler(&[("AWS_ENDPOINT_URL_SQS", &url)]);
    let delivery = delivery(&cloud);
    let held = running(&cloud, &holder, &delivery);
    // Less than a call to the queue may take.
    let soon = other
        .api
        .send(&delivery, deadline_in(Duration::from_secs(6)));
    assert_eq!(failures(&soon.answer()), ["m"]);
    assert!(
        other.log().contains("keep their visibility"),
        "{}",
        other.log()
    );
    go(&cloud);
    assert_eq!(failures(&held.answer()), [""; 0]);
}
