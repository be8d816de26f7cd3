//! The wire before servers that hear byte for byte what is sent; PostgreSQL itself is behind it in `provider-sql`'s tests.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::{Counts, Fault, HttpRequest, Plan, Protocol, Request, Statement, Wire};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A server that gives each of `replies` to a request of that many bytes, on a connection of its own, and tells what it
/// heard. A connection on which nothing is said is none.
fn server(replies: Vec<(usize, String)>) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (hear, heard) = mpsc::channel();
    thread::spawn(move || {
        for (length, reply) in replies {
            let mut request = vec![0; length];
            let mut connection = loop {
                let (mut connection, _) = listener.accept().unwrap();
                if connection.read_exact(&mut request).is_ok() {
                    break connection;
                }
            };
            connection.write_all(reply.as_bytes()).unwrap();
            hear.send(String::from_utf8(request.clone()).unwrap())
                .unwrap();
        }
    });
    (address, heard)
}

/// A wire to a server that says `ok` to `count` requests of this length.
fn wire(count: usize, request: &str) -> (Wire, mpsc::Receiver<String>) {
    let (address, heard) = server(vec![(request.len(), OK.to_owned()); count]);
    (Wire::start(address, Protocol::Http).unwrap(), heard)
}

/// What comes back for a request on a connection of its own, until `enough` bytes are here or the connection ends.
fn ask(wire: &Wire, request: &str, enough: usize) -> String {
    let mut connection = TcpStream::connect(wire.address()).unwrap();
    connection.write_all(request.as_bytes()).unwrap();
    received(&mut connection, enough)
}

fn received(connection: &mut TcpStream, enough: usize) -> String {
    let mut reply = Vec::new();
    let limit = u64::try_from(enough).unwrap();
    // A connection that is reset has ended, too.
    let _ = connection.take(limit).read_to_end(&mut reply);
    String::from_utf8(reply).unwrap()
}

fn until(holds: impl Fn() -> bool) {
    while !holds() {
        thread::sleep(Duration::from_millis(1));
    }
}

const PUT: &str = "PUT /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\none";

#[test]
fn a_dropped_reply_is_that_of_a_request_which_the_server_has_answered() {
    let (wire, heard) = wire(4, PUT);
    wire.arm(Plan::every(2, Fault::DropReply));
    let replies: Vec<_> = (0..4).map(|_| ask(&wire, PUT, OK.len())).collect();
    assert_eq!(replies, [OK, "", OK, ""]);
    assert_eq!(heard.iter().collect::<Vec<_>>(), [PUT; 4]);
    let counts = wire.counts();
    assert_eq!((counts.requests, counts.dropped_replies), (4, 2));
}

#[test]
fn a_dropped_request_is_heard_by_no_server() {
    let (wire, heard) = wire(2, PUT);
    wire.arm(Plan::nth(2, Fault::DropRequest));
    let replies: Vec<_> = (0..3).map(|_| ask(&wire, PUT, OK.len())).collect();
    assert_eq!(replies, [OK, "", OK]);
    assert_eq!(heard.iter().count(), 2);
    assert_eq!(wire.counts().dropped_requests, 1);
}

#[test]
fn requests_that_the_plan_is_not_about_pass_and_are_not_counted_by_it() {
    let request = |operation: &str| {
        format!(
            "POST / HTTP/1.1\r\nX-Amz-Target: DynamoDB_20120810.{operation}\r\nContent-Length: 2\r\n\r\n{{}}"
        )
    };
    // Both are of one length.
    let (read, write) = (request("GetItem"), request("PutItem"));
    let (wire, _heard) = wire(5, &read);
    wire.arm(Plan::every(2, Fault::DropReply).only(Request::is_write));
    let replies: Vec<_> = [&write, &read, &read, &write, &write]
        .map(|request| ask(&wire, request, OK.len()))
        .into();
    assert_eq!(replies, [OK, OK, OK, "", OK]);
}

#[test]
fn all_that_http_has_goes_through_byte_for_byte() {
    let plain = "GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n";
    let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\none\r\n0\r\nTrailer: t\r\n\r\n";
    let head = "HEAD / HTTP/1.1\r\n\r\n";
    let exchanges = [
        (plain, OK),
        (
            plain,
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\n",
        ),
        (head, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"),
        (plain, "HTTP/1.1 204 No Content\r\n\r\n"),
        (chunked, OK),
        (PUT, "HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n"),
        // Its end is the connection's, so it comes last.
        (plain, "HTTP/1.1 200 OK\r\n\r\nuntil the end"),
    ];
    let replies = exchanges.map(|(request, reply)| (request.len(), reply.to_owned()));
    let (address, heard) = server(replies.into());
    let wire = Wire::start(address, Protocol::Http).unwrap();
    let mut connection = TcpStream::connect(wire.address()).unwrap();
    for (request, reply) in exchanges {
        connection.write_all(request.as_bytes()).unwrap();
        assert_eq!(received(&mut connection, reply.len()), reply);
        assert_eq!(heard.recv().unwrap(), request);
    }
    assert_eq!(received(&mut connection, 1), "", "the connection is open");
    assert_eq!(wire.complaints(), Vec::<String>::new());
}

#[test]
fn who_expects_to_be_told_to_go_on_is_told() {
    let request = "PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\none";
    let interim = "HTTP/1.1 100 Continue\r\n\r\n";
    let (address, _heard) = server(vec![(request.len(), format!("{interim}{OK}"))]);
    let wire = Wire::start(address, Protocol::Http).unwrap();
    let mut connection = TcpStream::connect(wire.address()).unwrap();
    let (first, body) = request.split_at(request.len() - 3);
    connection.write_all(first.as_bytes()).unwrap();
    assert_eq!(received(&mut connection, interim.len()), interim);
    connection.write_all(body.as_bytes()).unwrap();
    assert_eq!(received(&mut connection, OK.len()), OK);
}

#[test]
fn what_is_held_goes_on_when_it_is_released_even_without_its_client() {
    let (wire, heard) = wire(2, PUT);
    let mut kept = TcpStream::connect(wire.address()).unwrap();
    wire.arm(Plan::every(1, Fault::HoldReply));
    kept.write_all(PUT.as_bytes()).unwrap();
    until(|| wire.counts().held == 1);
    assert_eq!(heard.recv().unwrap(), PUT, "its request was to take place");
    // Only now: the server takes one connection after the other, and the first must be the one that asks first.
    let mut gone = TcpStream::connect(wire.address()).unwrap();
    wire.arm(Plan::every(1, Fault::HoldRequest));
    gone.write_all(PUT.as_bytes()).unwrap();
    until(|| wire.counts().held == 2);
    drop(gone);
    assert!(heard.try_recv().is_err(), "a held request was heard");
    wire.release();
    assert_eq!(received(&mut kept, OK.len()), OK);
    assert_eq!(heard.recv().unwrap(), PUT);
    assert_eq!(wire.counts().held, 0);
}

#[test]
fn a_delayed_request_arrives() {
    let (wire, heard) = wire(1, PUT);
    wire.arm(Plan::every(1, Fault::Delay(Duration::from_millis(1))));
    assert_eq!(ask(&wire, PUT, OK.len()), OK);
    assert_eq!(heard.recv().unwrap(), PUT);
    assert_eq!(wire.counts().delayed, 1);
}

#[test]
fn a_reply_that_is_cut_short_is_no_whole_reply() {
    let (address, _heard) = server(vec![(PUT.len(), OK[..OK.len() - 1].to_owned())]);
    let wire = Wire::start(address, Protocol::Http).unwrap();
    wire.arm(Plan::every(1, Fault::DropReply));
    assert_eq!(ask(&wire, PUT, 1), "");
    assert_eq!(wire.counts().dropped_replies, 0);
}

#[test]
fn what_is_no_http_is_complained_of() {
    let (wire, _heard) = wire(1, PUT);
    assert_eq!(ask(&wire, "hello\r\n\r\n", 1), "");
    let complaints = wire.complaints();
    assert!(
        complaints[0].starts_with("a request that is no HTTP/1.1"),
        "{complaints:?}"
    );
    let Counts { requests, .. } = wire.counts();
    assert_eq!(requests, 0);
}

#[test]
fn one_seed_is_one_sequence_of_faults() {
    let faults = [Fault::DropReply, Fault::DropRequest];
    let sequence = |seed| {
        let mut plan = Plan::seeded(seed, 4, faults);
        let request = Request::Sql(Vec::new());
        (0..1_000).map(|_| plan.fault(&request)).collect::<Vec<_>>()
    };
    assert_eq!(sequence(1), sequence(1));
    assert_ne!(sequence(1), sequence(2));
    for fault in faults {
        let struck = sequence(1)
            .iter()
            .filter(|struck| **struck == fault)
            .count();
        assert!((50..200).contains(&struck), "{fault:?} {struck} times");
    }
}

#[test]
fn writes_are_told_from_reads() {
    let sql = |sql: &str| {
        let (sql, bound) = (sql.to_owned(), Vec::new());
        Request::Sql(vec![Statement { sql, bound }]).is_write()
    };
    for write in ["INSERT INTO a", "update a", "  DELETE FROM a", "COMMIT"] {
        assert!(sql(write), "{write}");
    }
    for read in ["SELECT 'INSERT'", "", "BEGIN", "SHOW server_encoding"] {
        assert!(!sql(read), "{read}");
    }
    let http = |method: &str, target: Option<&str>| {
        let target = target.map(|value| ("x-amz-target".to_owned(), value.to_owned()));
        Request::Http(HttpRequest {
            method: method.to_owned(),
            target: "/".to_owned(),
            headers: target.into_iter().collect(),
            body: Vec::new(),
        })
        .is_write()
    };
    assert!(http("POST", None) && http("PATCH", None) && http("DELETE", None));
    assert!(!http("GET", None) && !http("HEAD", None));
    for (operation, write) in [
        ("PutItem", true),
        ("UpdateItem", true),
        ("TransactWriteItems", true),
        ("GetItem", false),
        ("BatchGetItem", false),
        ("Query", false),
        ("DescribeTable", false),
    ] {
        let target = format!("DynamoDB_20120810.{operation}");
        assert_eq!(http("POST", Some(&target)), write, "{operation}");
    }
    for (operation, write) in [
        ("Commit", true),
        ("CreateDocument", true),
        ("BatchWrite", true),
        ("BatchGetDocuments", false),
        ("RunQuery", false),
        ("Listen", false),
        ("BeginTransaction", false),
    ] {
        let request = Request::Http(HttpRequest {
            method: "POST".to_owned(),
            target: format!("/google.firestore.v1.Firestore/{operation}"),
            headers: vec![(
                "content-type".to_owned(),
                "application/grpc+proto".to_owned(),
            )],
            body: Vec::new(),
        });
        assert_eq!(request.is_write(), write, "{operation}");
    }
}
