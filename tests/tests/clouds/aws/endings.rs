//! How invocations and processes end, and what becomes of the jobs that run.

use std::{
    io::{BufReader, Write as _},
    net::TcpListener,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::Value;
use tests::{
    clouds::aws::{Cloud, Function, Message, batch, failures},
    eventually, is_alive, notification, record,
    runtime_api::{Pending, Request, deadline_in},
};

/// A job that waits for a file, and notes its start and its end.
const WAITS: &str = r#"
echo "$FIRSTCLAIM_JOB_ATTEMPT $$" >> started
while [ ! -e go ]; do sleep 0.05; done
echo "$FIRSTCLAIM_JOB_ATTEMPT" >> ended
"#;

/// The invocation of one message about one object.
fn delivery(cloud: &Cloud) -> String {
    let etag = cloud.put("roads.shp", "content").0;
    let body = notification(&[record("roads.shp", &etag).replace("geo-in", &cloud.name)]);
    batch(&cloud.queue_arn, &[Message::new("m", body)])
}

fn go(cloud: &Cloud) {
    std::fs::write(cloud.path("go"), "").unwrap();
}

/// Hands a delivery to a function, and waits until its job runs.
fn running(cloud: &Cloud, function: &Function, delivery: &str, deadline: u64) -> Pending {
    let pending = function.api.send(delivery, deadline);
    eventually("the job runs", || !cloud.lines("started").is_empty());
    pending
}

#[test]
fn a_job_whose_function_was_killed_is_finished_by_a_later_delivery() {
    let cloud = Cloud::new(WAITS);
    let short = [("FIRSTCLAIM_LEASE_SECONDS", "2")];
    let (mut first, second) = (cloud.function(&short), cloud.function(&short));
    cloud.put("roads.shp", "content");
    let messages = cloud.receive();
    let delivery = batch(&cloud.queue_arn, &messages);
    running(
        &cloud,
        &first,
        &delivery,
        deadline_in(Duration::from_secs(60)),
    );
    first.signal("KILL");
    assert_eq!(first.end(), -1);
    assert!(cloud.log(&first).contains("claimed"), "it left no trace");
    go(&cloud);
    // The queue gives the message out again, at first while the lease lasts.
    cloud.drain(&second);
    let row = cloud.row_of("roads.shp");
    assert_eq!((row.text("status"), row.text("attempt")), ("done", "2"));
    let ended = cloud.lines("ended");
    assert_eq!(
        ended.iter().filter(|attempt| *attempt == "2").count(),
        1,
        "{ended:?}"
    );
    // Its copy of the object is gone once the environment has a process again.
    let copies = || {
        let names = std::fs::read_dir(std::env::temp_dir()).unwrap();
        let of_first = format!("firstclaim-{}-", first.id());
        names
            .filter(|entry| {
                let name = entry.as_ref().unwrap().file_name();
                name.to_string_lossy().starts_with(&of_first)
            })
            .count()
    };
    let next = cloud.function(&[]);
    next.api.invoke(r#"{"Records":[]}"#).unwrap();
    assert_eq!(copies(), 0);
}

#[test]
fn a_held_message_is_hidden_for_as_long_as_the_lease_lasts() {
    let queue = RecordingQueue::start();
    let cloud = Cloud::new(WAITS);
    let settings = [
        ("FIRSTCLAIM_LEASE_SECONDS", "40"),
        ("AWS_ENDPOINT_URL_SQS", queue.url.as_str()),
    ];
    let (holder, other) = (cloud.function(&settings), cloud.function(&settings));
    let delivery = delivery(&cloud);
    let held = running(
        &cloud,
        &holder,
        &delivery,
        deadline_in(Duration::from_secs(120)),
    );
    assert_eq!(failures(&other.api.invoke(&delivery)), ["m"]);
    let calls = queue.calls.lock().unwrap().clone();
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert_eq!(calls[0]["ReceiptHandle"], "receipt of m");
    assert!(
        calls[0]["QueueUrl"]
            .as_str()
            .unwrap()
            .ends_with(&cloud.name),
        "{calls:?}"
    );
    let hidden = calls[0]["VisibilityTimeout"].as_u64().unwrap();
    assert!((1..=40).contains(&hidden), "{calls:?}");
    go(&cloud);
    assert_eq!(failures(&held.answer()), [""; 0]);
    assert_eq!(cloud.metrics(&other)[0]["held"], 1);
}

#[test]
fn a_held_message_comes_again_even_if_it_cannot_be_hidden() {
    let cloud = Cloud::new(WAITS);
    let (holder, other) = (cloud.function(&[]), cloud.function(&[]));
    let delivery = delivery(&cloud);
    let held = running(
        &cloud,
        &holder,
        &delivery,
        deadline_in(Duration::from_secs(120)),
    );
    // moto knows no such receipt.
    assert_eq!(failures(&other.api.invoke(&delivery)), ["m"]);
    assert!(
        cloud.log(&other).contains("was not changed"),
        "{}",
        cloud.log(&other)
    );
    go(&cloud);
    assert_eq!(failures(&held.answer()), [""; 0]);
}

#[test]
fn a_queue_that_does_not_answer_does_not_take_the_answers_time() {
    // It takes connections, and that is all.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let cloud = Cloud::new(WAITS);
    let holder = cloud.function(&[]);
    let other = cloud.function(&[("AWS_ENDPOINT_URL_SQS", &url)]);
    let delivery = delivery(&cloud);
    let held = running(
        &cloud,
        &holder,
        &delivery,
        deadline_in(Duration::from_secs(120)),
    );
    // Less than a call to the queue may take.
    let soon = other
        .api
        .send(&delivery, deadline_in(Duration::from_secs(6)));
    assert_eq!(failures(&soon.answer()), ["m"]);
    assert!(
        cloud.log(&other).contains("keep their visibility"),
        "{}",
        cloud.log(&other)
    );
    go(&cloud);
    assert_eq!(failures(&held.answer()), [""; 0]);
}

#[test]
fn a_job_that_needs_longer_than_its_invocation_is_stopped_and_recorded() {
    let cloud = Cloud::new(WAITS);
    let function = cloud.function(&[]);
    let delivery = delivery(&cloud);
    let deadline = deadline_in(Duration::from_secs(4));
    let first = running(&cloud, &function, &delivery, deadline);
    let lease: u64 = cloud.row().text("lease_until").parse().unwrap();
    assert!(
        lease <= deadline,
        "the lease ends at {lease}, after the deadline {deadline}"
    );
    assert_eq!(failures(&first.answer()), ["m"]);
    let row = cloud.row();
    assert_eq!(
        (row.text("status"), row.text("reason")),
        ("failed", "interrupted")
    );
    let started = cloud.lines("started");
    let process = started[0].split(' ').nth(1).unwrap();
    eventually("the job's process is gone", || !is_alive(process));
    go(&cloud);
    assert_eq!(failures(&function.api.invoke(&delivery)), [""; 0]);
    assert_eq!(cloud.row().text("attempt"), "2");
    assert_eq!(cloud.lines("ended"), ["2"]);
}

#[test]
fn without_time_nothing_is_claimed_and_nonsense_is_no_deadline() {
    let cloud = Cloud::new(WAITS);
    go(&cloud);
    let function = cloud.function(&[]);
    let delivery = delivery(&cloud);
    assert_eq!(
        failures(
            &function
                .api
                .send(&delivery, deadline_in(Duration::ZERO))
                .answer()
        ),
        ["m"]
    );
    assert_eq!(cloud.rows().len(), 0);
    // An emulator's deadline, in 1970; then one that no clock reaches; each an object of its own.
    for (number, deadline) in [600_000, 0, u64::MAX].into_iter().enumerate() {
        let key = format!("{number}.shp");
        let etag = cloud.put(&key, &key).0;
        let body = notification(&[record(&key, &etag).replace("geo-in", &cloud.name)]);
        let delivery = batch(&cloud.queue_arn, &[Message::new("m", body)]);
        assert_eq!(
            failures(&function.api.send(&delivery, deadline).answer()),
            [""; 0],
            "{deadline}"
        );
        assert_eq!(cloud.row_of(&key).text("status"), "done");
    }
}

#[test]
fn a_signal_stops_the_job_records_it_and_answers_before_the_end() {
    let cloud = Cloud::new(WAITS);
    let mut function = cloud.function(&[]);
    let delivery = delivery(&cloud);
    // Not the end of the invocation's time.
    let hours = deadline_in(Duration::from_secs(2 * 60 * 60));
    let pending = running(&cloud, &function, &delivery, hours);
    function.signal("TERM");
    assert_eq!(function.end(), 0, "{}", cloud.log(&function));
    assert!(pending.is_answered());
    assert_eq!(failures(&pending.answer()), ["m"]);
    let row = cloud.row();
    assert_eq!(
        (row.text("status"), row.text("reason")),
        ("failed", "interrupted")
    );
}

#[test]
fn an_idle_function_ends_at_once() {
    let cloud = Cloud::new(WAITS);
    let mut function = cloud.function(&[]);
    go(&cloud);
    assert_eq!(failures(&function.api.invoke(&delivery(&cloud))), [""; 0]);
    function.signal("TERM");
    assert_eq!(function.end(), 0);
}

#[test]
fn a_function_that_cannot_start_says_why() {
    let cloud = Cloud::new(WAITS);
    for (name, value) in [
        ("DEDUP_TABLE", ""),
        ("DEDUP_TABLE", "no/table"),
        ("FIRSTCLAIM_LEASE_SECOND", "5"),
        ("FIRSTCLAIM_LOG", "a=b=c"),
        ("DEDUP_TTL_SECONDS", "60"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "lots"),
    ] {
        let mut function = cloud.function(&[(name, value)]);
        assert_eq!(function.end(), 1, "{name}={value}");
        let told = function.api.failed_start().unwrap();
        assert!(
            told["errorMessage"].as_str().unwrap().contains(name),
            "{told}"
        );
        let log = cloud.log(&function);
        assert!(
            log.contains("cannot be started") && log.contains(name),
            "{log}"
        );
    }
}

#[test]
fn a_claim_store_that_is_away_brings_everything_again() {
    let cloud = Cloud::new(WAITS);
    let function = cloud.function(&[("DEDUP_TABLE", "no-such-table")]);
    assert_eq!(failures(&function.api.invoke(&delivery(&cloud))), ["m"]);
    assert_eq!(cloud.metrics(&function)[0]["unavailable"], 1);
    // The same where there is no queue.
    let etag = cloud.put("other.shp", "x").0;
    let direct = notification(&[record("other.shp", &etag).replace("geo-in", &cloud.name)]);
    assert!(function.api.invoke(&direct).is_err());
    assert_eq!(cloud.lines("started").len(), 0);
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
fn a_sweep_sends_what_nobody_delivers_again() {
    let cloud = Cloud::new(WAITS);
    let queue = ("FIRSTCLAIM_REDRIVE_QUEUE", cloud.queue_url.as_str());
    let sweep = r#"{"firstclaim":{"sweep":{}}}"#;
    let without = cloud.function(&[]);
    let error = without.api.invoke(sweep).unwrap_err();
    assert!(
        error["errorMessage"]
            .as_str()
            .unwrap()
            .contains("FIRSTCLAIM_REDRIVE_QUEUE"),
        "{error}"
    );
    let function = cloud.function(&[queue]);
    let swept = |sent: u64| {
        let reply = function.api.invoke(sweep).unwrap();
        assert_eq!(reply["sent"], sent, "{reply}");
        assert_eq!(cloud.metrics(&function).last().unwrap()["stuck"], sent);
    };
    // A job failed, and its message is gone.
    let delivery = delivery(&cloud);
    let deadline = deadline_in(Duration::from_secs(3));
    assert_eq!(
        failures(&function.api.send(&delivery, deadline).answer()),
        ["m"]
    );
    for message in cloud.receive() {
        let delete = cloud.sqs.delete_message().queue_url(&cloud.queue_url);
        cloud
            .wait(delete.receipt_handle(&message.receipt).send())
            .unwrap();
    }
    assert_eq!(cloud.depth(), 0);
    swept(0);
    // An hour later.
    cloud.age(&cloud.row(), Duration::from_secs(3_600));
    swept(1);
    swept(0);
    go(&cloud);
    cloud.drain(&function);
    let row = cloud.row();
    assert_eq!((row.text("status"), row.text("attempt")), ("done", "2"));
}
