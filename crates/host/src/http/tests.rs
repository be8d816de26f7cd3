//! Deliveries over TCP: what is answered, and what becomes of jobs.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::{body::Body, http::StatusCode};
use identity_core::claim::{Reason, Status};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::{JoinHandle, JoinSet},
    time::timeout,
};

use super::{
    intake::Intake,
    push::{self, Answers},
    request::Received,
    server::{Drain, serve},
};
use crate::testing::{Bench, LONG, PATIENCE, notification};

/// Jobs may end by themselves.
const GENTLE: Drain = Drain {
    jobs: LONG,
    ends: LONG,
};
/// Jobs are stopped at once.
const HARSH: Drain = Drain {
    jobs: Duration::ZERO,
    ends: LONG,
};

/// A server that takes deliveries at `/events`.
struct Served {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    server: JoinHandle<io::Result<()>>,
}

impl Served {
    async fn start(bench: &Bench, answers: Answers, call: Option<Duration>, drain: Drain) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let intake = Intake::new(Arc::new(bench.worker()), call);
        let app = push::at("/events", intake.clone(), answers);
        let (stop, stopped) = oneshot::channel();
        let stopped = async { stopped.await.unwrap() };
        let server = tokio::spawn(serve(listener, app, intake, stopped, drain));
        Self {
            address,
            stop,
            server,
        }
    }

    async fn of(bench: &Bench) -> Self {
        Self::start(bench, Answers::default(), None, GENTLE).await
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends these bytes, and reads until the server closes.
    async fn say(&self, bytes: &[u8]) -> Answer {
        let mut connection = self.connect().await;
        connection.write_all(bytes).await.unwrap();
        Answer::read(&mut connection).await
    }

    async fn post(&self, body: &str) -> Answer {
        self.say(post(body).as_bytes()).await
    }

    /// Tells it to end, and waits until it has.
    async fn end(self) {
        self.stop.send(()).unwrap();
        ended(self.server).await;
    }
}

async fn ended(server: JoinHandle<io::Result<()>>) {
    timeout(PATIENCE, server).await.unwrap().unwrap().unwrap();
}

fn request(method: &str, path: &str, headers: &str, body: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn post(body: &str) -> String {
    request("POST", "/events", "", body)
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    async fn read(connection: &mut TcpStream) -> Self {
        let mut text = String::new();
        let read = connection.read_to_string(&mut text);
        timeout(PATIENCE, read).await.unwrap().unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self {
            status,
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    fn header(&self, name: &str) -> Option<&str> {
        let headers = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut named = headers.filter(|(other, _)| other.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value)
    }

    fn counts(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_str(&self.body).unwrap()
    }
}

#[tokio::test]
async fn what_is_recorded_is_acknowledged_and_counted() {
    let bench = Bench::new();
    let served = Served::of(&bench).await;
    let body = notification(&["a", "b"]);
    let first = served.post(&body).await;
    assert_eq!(
        (first.status, &first.counts()["done"]),
        (200, &Value::from(2))
    );
    assert_eq!(first.counts()["claimed"], 2);
    let second = served.post(&body).await;
    assert_eq!(
        (second.status, &second.counts()["duplicate"]),
        (200, &2.into())
    );
    assert_eq!(bench.job.runs(), (2, 2));
    served.end().await;

    let without_body = Answers {
        acknowledged: StatusCode::NO_CONTENT,
        ..Answers::default()
    };
    let served = Served::start(&bench, without_body, None, GENTLE).await;
    let third = served.post(&body).await;
    assert_eq!((third.status, third.body.as_str()), (204, ""));
}

#[tokio::test]
async fn what_failed_comes_again_all_of_it() {
    let bench = Bench::new();
    let served = Served::of(&bench).await;
    bench.job.fails.store(true, Ordering::SeqCst);
    let failed = served.post(&notification(&["a", "b"])).await;
    assert_eq!(
        (failed.status, failed.header("retry-after")),
        (503, Some("10"))
    );
    assert_eq!(
        failed.body,
        "2 of 2 must come again; the first: s3://geo/a is failed (exit code 1)\n"
    );
    bench.job.fails.store(false, Ordering::SeqCst);
    let again = served.post(&notification(&["a", "b"])).await;
    assert_eq!(again.counts()["done"], 2);
}

#[tokio::test]
async fn without_the_claim_store_nothing_runs_and_all_comes_again() {
    let bench = Bench::new();
    let served = Served::of(&bench).await;
    bench.store.away.store(true, Ordering::SeqCst);
    assert_eq!(served.post(&notification(&["a"])).await.status, 503);
    assert_eq!(bench.job.runs(), (0, 0));
    bench.store.away.store(false, Ordering::SeqCst);
    assert_eq!(served.post(&notification(&["a"])).await.status, 200);
}

#[tokio::test]
async fn handshakes_are_answered_as_they_stand_and_need_no_store() {
    let bench = Bench::new();
    bench.store.away.store(true, Ordering::SeqCst);
    let served = Served::of(&bench).await;
    let event_grid = served
        .post(
            r#"[{"id":"1","topic":"/t","subject":"","data":{"validationCode":"c0de"},"eventType":"Microsoft.EventGrid.SubscriptionValidationEvent","eventTime":"2026-01-02T03:04:05Z","metadataVersion":"1","dataVersion":"1"}]"#,
        )
        .await;
    assert_eq!(event_grid.status, 200);
    assert_eq!(
        event_grid.counts(),
        serde_json::json!({"validationResponse": "c0de"})
    );
    let origin = "WebHook-Request-Origin: eventgrid.azure.net\r\nWebHook-Request-Rate: 120\r\n";
    let options = request("OPTIONS", "/events", origin, "");
    let cloud_events = served.say(options.as_bytes()).await;
    assert_eq!(cloud_events.status, 200);
    assert_eq!(
        cloud_events.header("WebHook-Allowed-Origin"),
        Some("eventgrid.azure.net")
    );
    assert_eq!(cloud_events.header("WebHook-Allowed-Rate"), Some("120"));
    // One that asks nothing is no delivery.
    let options = request("OPTIONS", "/events", "", &notification(&["a"]));
    assert_eq!(served.say(options.as_bytes()).await.status, 405);
    assert!(bench.store.records().await.is_empty());
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused_however_it_is_framed() {
    let bench = Bench::new();
    let body = notification(&["a"]);
    let answers = Answers {
        longest_body: body.len(),
        ..Answers::default()
    };
    let served = Served::start(&bench, answers, None, GENTLE).await;
    let told = format!(
        "the body is longer than the {} bytes that are taken\n",
        body.len()
    );
    let head = "POST /events HTTP/1.1\r\nHost: test\r\nConnection: close\r\n";
    // Only announced: none of it is sent.
    let announced = format!("{head}Content-Length: {}\r\n\r\n", body.len() + 1);
    let refused = served.say(announced.as_bytes()).await;
    assert_eq!((refused.status, &refused.body), (413, &told));
    let absurd = format!("{head}Content-Length: {}\r\n\r\n", u64::MAX / 2);
    assert_eq!(served.say(absurd.as_bytes()).await.status, 413);
    // In chunks, the last of which never comes.
    let chunk = |part: &str| format!("{:x}\r\n{part}\r\n", part.len());
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n{}", chunk(&body));
    let refused = served
        .say(format!("{chunked}{}", chunk(" ")).as_bytes())
        .await;
    assert_eq!((refused.status, &refused.body), (413, &told));
    assert!(bench.store.records().await.is_empty());
    // Just as long as it may be.
    let whole = served.say(format!("{chunked}0\r\n\r\n").as_bytes()).await;
    assert_eq!(whole.counts()["done"], 1);
    assert_eq!(served.post(&body).await.counts()["duplicate"], 1);
}

#[tokio::test]
async fn what_is_no_request_is_told_and_what_is_no_event_is_recorded() {
    let bench = Bench::new();
    let served = Served::of(&bench).await;
    assert_eq!(served.say(b"what is this?\r\n\r\n").await.status, 400);
    let head = "POST /events HTTP/1.1\r\nHost: test\r\nConnection: close\r\n";
    let misframed = format!("{head}Transfer-Encoding: chunked\r\n\r\nno length\r\n");
    assert_eq!(served.say(misframed.as_bytes()).await.status, 400);
    assert!(bench.store.records().await.is_empty());
    for (unreadable, records) in [("{", 1), ("", 2), ("{\"hello\":\"world\"}", 3)] {
        let answer = served.post(unreadable).await;
        assert_eq!(answer.counts()["rejected"], 1, "{unreadable}");
        let recorded = bench.store.records().await;
        assert_eq!(recorded.len(), records, "{unreadable}");
        assert!(
            recorded
                .iter()
                .all(|record| record.reason == Some(Reason::Unreadable))
        );
    }
}

#[tokio::test]
async fn only_deliveries_are_acknowledged() {
    let bench = Bench::new();
    let served = Served::of(&bench).await;
    let body = notification(&["a"]);
    for (method, path, status) in [
        ("GET", "/health", 200),
        ("HEAD", "/health", 200),
        ("POST", "/health", 405),
        ("GET", "/events", 405),
        ("PUT", "/events", 405),
        ("POST", "/", 404),
        ("POST", "/events/", 404),
        ("GET", "/favicon.ico", 404),
    ] {
        let request = request(method, path, "", &body);
        let answer = served.say(request.as_bytes());
        assert_eq!(answer.await.status, status, "{method} {path}");
    }
    assert!(bench.store.records().await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_deliveries_at_once_one_runs_the_job_and_the_others_come_again() {
    let bench = Bench::waiting();
    let served = Arc::new(Served::of(&bench).await);
    let mut deliveries = JoinSet::new();
    for _ in 0..8 {
        let served = served.clone();
        deliveries.spawn(async move { served.post(&notification(&["a"])).await });
    }
    for _ in 0..7 {
        let held = deliveries.join_next().await.unwrap().unwrap();
        assert_eq!(held.status, 503);
        let pause: u64 = held.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=120).contains(&pause), "{pause}");
        assert!(held.body.contains("is held"), "{}", held.body);
    }
    // The winner is let go once all others are answered.
    bench.job.go.add_permits(1);
    let won = deliveries.join_next().await.unwrap().unwrap();
    assert_eq!(won.counts()["done"], 1);
    assert_eq!(bench.job.runs(), (1, 1));
}

#[tokio::test]
async fn a_caller_that_hangs_up_stops_no_job() {
    let bench = Bench::waiting();
    let served = Served::of(&bench).await;
    let mut connection = served.connect().await;
    connection
        .write_all(post(&notification(&["a"])).as_bytes())
        .await
        .unwrap();
    bench.job.starts(1).await;
    drop(connection);
    // And one whose call is dropped beyond doubt.
    let intake = Intake::new(Arc::new(bench.worker()), None);
    let request = axum::http::Request::post("/events").body(Body::from(notification(&["b"])));
    let received = Received::read(request.unwrap(), 1_000).await.unwrap();
    tokio::select! {
        biased;
        delivered = intake.take(received) => panic!("{delivered:?}"),
        () = bench.job.starts(2) => {}
    }
    bench.job.go.add_permits(2);
    intake.close();
    timeout(PATIENCE, intake.ended()).await.unwrap();
    served.end().await;
    let records = bench.store.records().await;
    let done = records.iter().map(|record| (record.status, record.attempt));
    assert_eq!(done.collect::<Vec<_>>(), [(Status::Done, 1); 2]);
}

#[tokio::test]
async fn a_job_that_needs_longer_than_its_call_is_stopped_and_comes_again() {
    let bench = Bench::waiting();
    let short = Some(Duration::from_millis(600));
    let served = Served::start(&bench, Answers::default(), short, GENTLE).await;
    let stopped = served.post(&notification(&["a"])).await;
    assert_eq!(stopped.status, 503);
    let record = &bench.store.records().await[0];
    assert_eq!(
        (record.status, record.reason),
        (Status::Failed, Some(Reason::Interrupted))
    );
}

#[tokio::test]
async fn at_the_end_what_runs_is_answered_and_nothing_new_is_claimed() {
    let bench = Bench::waiting();
    let served = Served::of(&bench).await;
    // A request that has begun to arrive.
    let late = post(&notification(&["late"]));
    let (begin, rest) = late.split_at(late.len() - 10);
    let mut arriving = served.connect().await;
    arriving.write_all(begin.as_bytes()).await.unwrap();
    let mut running = served.connect().await;
    running
        .write_all(post(&notification(&["a"])).as_bytes())
        .await
        .unwrap();
    bench.job.starts(1).await;
    let address = served.address;
    served.stop.send(()).unwrap();
    // The listener is closed at once, so that no other is taken.
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    arriving.write_all(rest.as_bytes()).await.unwrap();
    let refused = Answer::read(&mut arriving).await;
    assert_eq!(
        (refused.status, refused.body.as_str()),
        (503, "this process ends\n")
    );
    bench.job.go.add_permits(1);
    assert_eq!(Answer::read(&mut running).await.counts()["done"], 1);
    ended(served.server).await;
    assert_eq!(bench.job.runs(), (1, 1));
    assert_eq!(bench.store.records().await.len(), 1);
}

#[tokio::test]
async fn what_still_runs_when_the_time_is_over_is_recorded_and_won_by_the_next() {
    let bench = Bench::waiting();
    let served = Served::start(&bench, Answers::default(), None, HARSH).await;
    let mut running = served.connect().await;
    running
        .write_all(post(&notification(&["a"])).as_bytes())
        .await
        .unwrap();
    bench.job.starts(1).await;
    served.stop.send(()).unwrap();
    assert_eq!(Answer::read(&mut running).await.status, 503);
    ended(served.server).await;
    let record = bench.store.records().await.remove(0);
    assert_eq!(
        (record.status, record.reason),
        (Status::Failed, Some(Reason::Interrupted))
    );
    bench.job.go.add_permits(1);
    let next = Served::of(&bench).await;
    assert_eq!(next.post(&notification(&["a"])).await.counts()["done"], 1);
    assert_eq!(bench.store.records().await[0].attempt, 2);
}

#[tokio::test]
async fn neither_silence_nor_a_store_that_hangs_keeps_it_from_ending() {
    let bench = Bench::waiting();
    let impatient = Drain {
        jobs: Duration::ZERO,
        ends: Duration::ZERO,
    };
    let served = Served::start(&bench, Answers::default(), None, impatient).await;
    let mut silent = served.connect().await;
    silent.write_all(b"POST /eve").await.unwrap();
    let mut running = served.connect().await;
    running
        .write_all(post(&notification(&["a"])).as_bytes())
        .await
        .unwrap();
    bench.job.starts(1).await;
    bench.store.silent.store(true, Ordering::SeqCst);
    served.end().await;
    assert_eq!(bench.store.records().await[0].status, Status::Processing);
}

#[tokio::test]
async fn a_sweep_is_answered_with_what_it_did() {
    let bench = Bench::new();
    let served = Served::of(&bench).await;
    let sweep = r#"{"firstclaim":{"sweep":{}}}"#;
    let without = served.post(sweep).await;
    assert_eq!(without.status, 501);
    assert!(
        without.body.contains("FIRSTCLAIM_REDRIVE_QUEUE"),
        "{without:?}"
    );
    assert!(bench.store.records().await.is_empty());

    let mut bench = Bench::new();
    bench.redrives = Some(Arc::new(crate::testing::NoQueue));
    let served = Served::of(&bench).await;
    let swept = served.post(sweep).await;
    assert_eq!((swept.status, &swept.counts()["sent"]), (200, &0.into()));
    bench.store.away.store(true, Ordering::SeqCst);
    let away = served.post(sweep).await;
    assert_eq!(away.status, 503);
    assert!(away.body.contains("connection refused"), "{away:?}");
}

#[tokio::test]
async fn a_sweep_does_not_keep_a_process_from_ending() {
    let mut bench = Bench::new();
    bench.redrives = Some(Arc::new(crate::testing::NoQueue));
    bench.store.silent.store(true, Ordering::SeqCst);
    let served = Served::of(&bench).await;
    let mut connection = served.connect().await;
    let sweep = post(r#"{"firstclaim":{"sweep":{}}}"#);
    connection.write_all(sweep.as_bytes()).await.unwrap();
    let mut asked = bench.store.asked.subscribe();
    let asked = asked.wait_for(|asked| *asked > 0);
    timeout(PATIENCE, asked).await.unwrap().unwrap();
    served.end().await;
    let answer = Answer::read(&mut connection).await;
    assert_eq!(answer.status, 503);
    assert!(answer.body.contains("this process ends"), "{answer:?}");
}
