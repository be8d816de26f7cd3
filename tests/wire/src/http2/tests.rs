//! The wire between a client and a server of HTTP/2, which speak as gRPC does; and before one that speaks in frames.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::{
    future::poll_fn,
    io::{Read as _, Write as _},
    net::TcpStream,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use bytes::Bytes;
use h2::{
    Reason, RecvStream, SendStream,
    client::SendRequest,
    server::{self, SendResponse},
};
use http::{HeaderMap, Request, Response};
use tokio::{net, sync::Semaphore};

use crate::{Counts, Fault, Plan, Protocol, Request as Seen, Wire};

/// More than the windows that both ends begin with hold.
const LARGE: usize = 300_000;

/// A server, and what it has heard.
#[derive(Debug, Clone)]
struct Server {
    /// The path of each request that it has heard whole, and of each that was given up.
    heard: Arc<Mutex<Vec<String>>>,
    /// Lets one answer to `/Late` go.
    late: Arc<Semaphore>,
}

impl Server {
    fn heard(&self) -> Vec<String> {
        let mut heard = self.heard.lock().unwrap().clone();
        heard.sort();
        heard
    }

    fn hear(&self, what: impl Into<String>) {
        self.heard.lock().unwrap().push(what.into());
    }

    async fn answer(
        self,
        request: Request<RecvStream>,
        mut respond: SendResponse<Bytes>,
    ) -> Result<(), h2::Error> {
        let path = request.uri().path().to_owned();
        let mut body = request.into_body();
        let ok = || {
            Response::builder()
                .header("content-type", "application/grpc")
                .body(())
                .unwrap()
        };
        if path == "/Chat" {
            let mut reply = respond.send_response(ok(), false)?;
            while let Some(said) = body.data().await {
                reply.send_data(said?, false)?;
            }
            self.hear(path);
            return reply.send_trailers(status("0"));
        }
        let asked = all(&mut body).await?;
        if path != "/Never" {
            self.hear(path.clone());
        }
        match path.as_str() {
            "/Refused" => {
                let reply = Response::builder()
                    .header("grpc-status", "7")
                    .body(())
                    .unwrap();
                respond.send_response(reply, true)?;
                return Ok(());
            }
            "/Reset" => {
                respond.send_reset(Reason::REFUSED_STREAM);
                return Ok(());
            }
            "/Never" => {
                let reason = poll_fn(|cx| respond.poll_reset(cx)).await?;
                self.hear(format!("{path} {reason:?}"));
                return Ok(());
            }
            "/Broken" => {
                let mut reply = respond.send_response(ok(), false)?;
                reply.send_data(asked, false)?;
                reply.send_reset(Reason::INTERNAL_ERROR);
                return Ok(());
            }
            "/Late" => self.late.acquire().await.unwrap().forget(),
            _ => {}
        }
        let mut reply = respond.send_response(ok(), false)?;
        reply.send_data(asked, false)?;
        reply.send_trailers(status("0"))
    }
}

fn status(code: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(
        http::HeaderName::from_static("grpc-status"),
        http::HeaderValue::from_static(code),
    )])
}

async fn all(body: &mut RecvStream) -> Result<Bytes, h2::Error> {
    let mut read = Vec::new();
    while let Some(data) = body.data().await.transpose()? {
        body.flow_control().release_capacity(data.len())?;
        read.extend_from_slice(&data);
    }
    Ok(read.into())
}

/// A wire to a server that answers what it is asked with the same body.
fn wire() -> (Wire, Server) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    listener.set_nonblocking(true).unwrap();
    let server = Server {
        heard: Arc::default(),
        late: Arc::new(Semaphore::new(0)),
    };
    let serving = server.clone();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = net::TcpListener::from_std(listener).unwrap();
            loop {
                let (connection, _) = listener.accept().await.unwrap();
                let serving = serving.clone();
                tokio::spawn(async move {
                    let mut connection = server::handshake(connection).await.unwrap();
                    while let Some(Ok((request, respond))) = connection.accept().await {
                        if request.uri().path() == "/Leave" {
                            return; // and the connection with it
                        }
                        if request.uri().path() == "/Last" {
                            connection.graceful_shutdown();
                        }
                        tokio::spawn(serving.clone().answer(request, respond));
                    }
                });
            }
        });
    });
    (Wire::start(address, Protocol::Http2).unwrap(), server)
}

async fn connect(wire: &Wire) -> SendRequest<Bytes> {
    let connection = net::TcpStream::connect(wire.address()).await.unwrap();
    let (requests, connection) = h2::client::handshake(connection).await.unwrap();
    tokio::spawn(connection);
    requests
}

/// A message as gRPC frames it.
fn message(text: &str) -> Bytes {
    let length = u32::try_from(text.len()).unwrap().to_be_bytes();
    [&[0][..], &length, text.as_bytes()].concat().into()
}

fn begin(
    requests: &mut SendRequest<Bytes>,
    path: &str,
) -> Result<(h2::client::ResponseFuture, SendStream<Bytes>), h2::Error> {
    let request = Request::post(format!("http://server{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .unwrap();
    requests.send_request(request, false)
}

/// What comes back: the body, and the status of gRPC.
async fn call(
    requests: &SendRequest<Bytes>,
    path: &str,
    said: Bytes,
) -> Result<(Bytes, String), h2::Error> {
    let mut requests = requests.clone().ready().await?;
    let (reply, mut body) = begin(&mut requests, path)?;
    body.send_data(said, true)?;
    let (parts, mut body) = reply.await?.into_parts();
    let read = all(&mut body).await?;
    let trailers = body.trailers().await?.unwrap_or(parts.headers);
    let status = trailers["grpc-status"].to_str().unwrap().to_owned();
    Ok((read, status))
}

async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn what_is_asked_is_answered_with_all_that_belongs_to_it() {
    let (wire, server) = wire();
    let requests = connect(&wire).await;
    let large = "x".repeat(LARGE);
    for said in [Bytes::new(), message("one"), message(&large)] {
        let reply = call(&requests, "/Say", said.clone()).await.unwrap();
        assert_eq!(reply, (said, "0".to_owned()));
    }
    let refused = call(&requests, "/Refused", message("two")).await.unwrap();
    assert_eq!(refused, (Bytes::new(), "7".to_owned()));
    assert_eq!(server.heard(), ["/Refused", "/Say", "/Say", "/Say"]);
    assert_eq!(wire.complaints(), Vec::<String>::new());
    let Counts {
        requests, replies, ..
    } = wire.counts();
    assert_eq!((requests, replies), (4, 4));
}

#[tokio::test]
async fn a_dropped_reply_is_that_of_a_request_which_the_server_has_answered() {
    for (path, said) in [
        ("/Say", message("one")),
        ("/Say", message(&"x".repeat(LARGE))),
        ("/Refused", message("one")),
    ] {
        let (wire, server) = wire();
        wire.arm(Plan::every(2, Fault::DropReply));
        for round in 1..=4 {
            let requests = connect(&wire).await;
            let reply = call(&requests, path, said.clone()).await;
            assert_eq!(reply.is_err(), round % 2 == 0, "{path} {round}: {reply:?}");
            if let Err(error) = reply {
                // As when a wire breaks, and not as when a server says that it will not answer.
                assert!(error.is_io());
                assert!(call(&requests, path, said.clone()).await.is_err());
            }
        }
        assert_eq!(server.heard(), [path; 4]);
        let counts = wire.counts();
        assert_eq!(
            (counts.requests, counts.replies, counts.dropped_replies),
            (4, 4, 2)
        );
    }
}

#[tokio::test]
async fn a_dropped_request_is_heard_by_no_server() {
    let (wire, server) = wire();
    wire.arm(Plan::nth(1, Fault::DropRequest));
    assert!(
        call(&connect(&wire).await, "/Say", message("one"))
            .await
            .is_err()
    );
    assert!(
        call(&connect(&wire).await, "/Say", message("two"))
            .await
            .is_ok()
    );
    assert_eq!(server.heard(), ["/Say"]);
    assert_eq!(wire.counts().dropped_requests, 1);
}

#[tokio::test]
async fn a_fault_strikes_one_of_many_on_a_connection_and_the_others_are_answered() {
    for fault in [Fault::DropReply, Fault::DropRequest] {
        let (wire, server) = wire();
        wire.arm(Plan::every(1, fault).only(|request| path(request) == "/Struck"));
        let requests = connect(&wire).await;
        let large = message(&"x".repeat(LARGE));
        let others: Vec<_> = (0..8)
            .map(|_| {
                let (requests, said) = (requests.clone(), large.clone());
                tokio::spawn(async move { call(&requests, "/Late", said).await })
            })
            .collect();
        until(|| server.heard().len() == others.len()).await;
        let struck = {
            let requests = requests.clone();
            tokio::spawn(async move { call(&requests, "/Struck", message("one")).await })
        };
        until(|| wire.counts().dropped_replies + wire.counts().dropped_requests == 1).await;
        assert!(!struck.is_finished(), "the connection was closed at once");
        server.late.add_permits(others.len());
        for other in others {
            assert_eq!(
                other.await.unwrap().unwrap(),
                (large.clone(), "0".to_owned())
            );
        }
        assert!(struck.await.unwrap().unwrap_err().is_io());
        let heard = server.heard().contains(&"/Struck".to_owned());
        assert_eq!(heard, fault == Fault::DropReply);
    }
}

#[tokio::test]
async fn what_is_held_waits_alone_and_takes_place_without_its_client() {
    let (wire, server) = wire();
    wire.arm(Plan::new(|request| match path(request) {
        "/HoldReply" => Fault::HoldReply,
        "/HoldRequest" => Fault::HoldRequest,
        _ => Fault::Pass,
    }));
    let kept = connect(&wire).await;
    let reply = {
        let kept = kept.clone();
        tokio::spawn(async move { call(&kept, "/HoldReply", message("one")).await })
    };
    until(|| wire.counts().held == 1).await;
    call(&kept, "/Say", message("two")).await.unwrap();
    let gone = tokio::net::TcpStream::connect(wire.address())
        .await
        .unwrap();
    let (mut requests, connection) = h2::client::handshake::<_>(gone).await.unwrap();
    let connection = tokio::spawn(connection);
    let (_reply, mut body) = begin(&mut requests, "/HoldRequest").unwrap();
    body.send_data(message("three"), true).unwrap();
    until(|| wire.counts().held == 2).await;
    connection.abort();
    assert_eq!(server.heard(), ["/HoldReply", "/Say"]);
    wire.release();
    assert_eq!(reply.await.unwrap().unwrap().0, message("one"));
    until(|| server.heard() == ["/HoldReply", "/HoldRequest", "/Say"]).await;
    assert_eq!(wire.counts().held, 0);
}

#[tokio::test]
async fn a_delayed_request_arrives() {
    let (wire, server) = wire();
    wire.arm(Plan::every(1, Fault::Delay(Duration::from_millis(1))));
    call(&connect(&wire).await, "/Say", message("one"))
        .await
        .unwrap();
    assert_eq!(server.heard(), ["/Say"]);
    assert_eq!(wire.counts().delayed, 1);
}

#[tokio::test]
async fn a_call_in_both_directions_is_judged_by_its_first_message_and_lost_whole() {
    let (wire, server) = wire();
    let requests = connect(&wire).await;
    for fault in [Fault::Pass, Fault::DropReply] {
        wire.arm(Plan::every(1, fault).only(|request| {
            matches!(
                request, Seen::Http(request) if request.body == message("one")
            )
        }));
        let mut requests = requests.clone().ready().await.unwrap();
        let (reply, mut to) = begin(&mut requests, "/Chat").unwrap();
        // In two pieces: the first is no message yet.
        let mut first = message("one");
        to.send_data(first.split_to(6), false).unwrap();
        to.send_data(first, false).unwrap();
        if fault == Fault::Pass {
            let mut reply = reply.await.unwrap().into_body();
            // An answer that comes while more is to be asked.
            let mut heard = Vec::new();
            while heard.len() < message("one").len() {
                heard.extend(reply.data().await.unwrap().unwrap());
            }
            assert_eq!(heard, message("one"));
            to.send_data(message("two"), true).unwrap();
            assert_eq!(reply.data().await.unwrap().unwrap(), message("two"));
            assert_eq!(reply.trailers().await.unwrap().unwrap(), status("0"));
        } else {
            to.send_data(message("two"), true).unwrap();
            assert!(reply.await.unwrap_err().is_io());
        }
    }
    assert_eq!(server.heard(), ["/Chat", "/Chat"]);
    assert_eq!(wire.counts().dropped_replies, 1);
}

#[tokio::test]
async fn who_gives_up_and_who_refuses_is_heard_at_the_other_end() {
    let (wire, server) = wire();
    let requests = connect(&wire).await;
    let refused = call(&requests, "/Reset", message("one")).await.unwrap_err();
    assert_eq!(refused.reason(), Some(Reason::REFUSED_STREAM));
    let broken = call(&requests, "/Broken", message("one"))
        .await
        .unwrap_err();
    assert_eq!(broken.reason(), Some(Reason::INTERNAL_ERROR));
    let (reply, mut body) = begin(&mut requests.clone(), "/Never").unwrap();
    body.send_data(message("one"), true).unwrap();
    until(|| wire.counts().requests == 3).await;
    drop((reply, body));
    until(|| server.heard().contains(&"/Never CANCEL".to_owned())).await;
    // A reply that was not whole was none.
    assert_eq!(wire.counts().replies, 0);
}

#[tokio::test]
async fn a_server_that_leaves_ends_the_connection_of_its_client() {
    let (wire, _server) = wire();
    wire.arm(Plan::every(1, Fault::DropReply));
    let requests = connect(&wire).await;
    assert!(
        call(&requests, "/Leave", message("one"))
            .await
            .unwrap_err()
            .is_io()
    );
    assert_eq!(wire.counts().dropped_replies, 0, "there was none");
    wire.arm(Plan::none());
    let requests = connect(&wire).await;
    call(&requests, "/Last", message("one")).await.unwrap();
    while requests.clone().ready().await.is_ok() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    call(&connect(&wire).await, "/Say", message("two"))
        .await
        .unwrap();
}

fn path(request: &Seen) -> &str {
    match request {
        Seen::Http(request) => &request.target,
        Seen::Sql(_) => "",
    }
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A frame of this type.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The next frame's type, flags, stream and payload; `None` if the connection has ended.
fn next(connection: &mut TcpStream) -> Option<(u8, u8, u32, Vec<u8>)> {
    let mut head = [0; 9];
    connection.read_exact(&mut head).ok()?;
    let [_, _, _, kind, flags, stream @ ..] = head;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; usize::try_from(length).unwrap()];
    connection.read_exact(&mut payload).ok()?;
    Some((kind, flags, u32::from_be_bytes(stream), payload))
}

#[test]
fn headers_that_are_padded_prioritised_and_continued_are_read_and_pings_answered() {
    let (wire, server) = wire();
    let mut connection = TcpStream::connect(wire.address()).unwrap();
    // `:method POST`, `:scheme http`, and in the continuation `:path /`; no authority. END_STREAM, PADDED, PRIORITY.
    let headers = [&[3][..], &[0, 0, 0, 0, 15], &[0x83, 0x86], &[0, 0, 0]].concat();
    let sent = [
        PREFACE.to_vec(),
        frame(4, 0, 0, &[]),
        frame(2, 0, 3, &[0, 0, 0, 0, 7]),
        frame(8, 0, 0, &1_000u32.to_be_bytes()),
        frame(1, 0x1 | 0x8 | 0x20, 1, &headers),
        frame(9, 0x4, 1, &[0x84]),
        frame(6, 0, 0, b"12345678"),
    ];
    connection.write_all(&sent.concat()).unwrap();
    let (mut pong, mut trailers) = (None, false);
    while pong.is_none() || !trailers {
        let (kind, flags, stream, payload) = next(&mut connection).unwrap();
        match kind {
            1 if stream == 1 && flags & 0x1 != 0 => trailers = true,
            6 => pong = Some((flags, payload)),
            _ => {}
        }
    }
    assert_eq!(pong, Some((1, b"12345678".to_vec())));
    assert_eq!(server.heard(), ["/"]);
    assert_eq!(wire.complaints(), Vec::<String>::new());
}

#[tokio::test]
async fn what_is_no_http2_is_complained_of_and_the_connection_closed() {
    let huge = 0x00FF_FFFF_u32.to_be_bytes();
    let long = [&huge[1..], &[0, 0, 0, 0, 0, 1], &[0; 64]].concat();
    for (what, sent) in [
        (
            "a preface of another protocol",
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        ),
        (
            "a frame longer than allowed",
            [PREFACE.to_vec(), frame(4, 0, 0, &[]), long].concat(),
        ),
        ("headers that nothing continues", {
            let headers = frame(1, 0, 1, &[0x83]);
            [
                PREFACE.to_vec(),
                frame(4, 0, 0, &[]),
                headers,
                frame(6, 0, 0, &[0; 8]),
            ]
            .concat()
        }),
    ] {
        let (wire, server) = wire();
        let mut connection = TcpStream::connect(wire.address()).unwrap();
        connection.write_all(&sent).unwrap();
        while next(&mut connection).is_some() {}
        until(|| !wire.complaints().is_empty()).await;
        let complaints = wire.complaints();
        assert!(
            complaints[0].starts_with("no HTTP/2: "),
            "{what}: {complaints:?}"
        );
        assert_eq!(wire.counts().requests, 0, "{what}");
        assert_eq!(server.heard(), Vec::<String>::new(), "{what}");
    }
}

#[test]
fn a_frame_that_ends_before_its_length_is_an_end_and_no_request() {
    let (wire, server) = wire();
    let mut connection = TcpStream::connect(wire.address()).unwrap();
    let headers = frame(1, 0x5, 1, &[0x83, 0x86, 0x84]);
    let sent = [
        PREFACE.to_vec(),
        frame(4, 0, 0, &[]),
        headers[..10].to_vec(),
    ]
    .concat();
    connection.write_all(&sent).unwrap();
    connection.shutdown(std::net::Shutdown::Write).unwrap();
    while next(&mut connection).is_some() {}
    assert_eq!(wire.counts().requests, 0);
    assert_eq!(server.heard(), Vec::<String>::new());
}
