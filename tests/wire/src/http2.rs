//! HTTP/2 in the clear, by prior knowledge, as gRPC speaks it: a request is a stream, and many are under way at once.
//!
//! Neither a request nor a reply can be left out of such a connection by leaving out its frames: headers are compressed
//! against all that were sent before, and what is not received is never room again. So the wire is a server to the
//! client and a client to the server, and carries each stream whole from the one to the other. Frames of one connection
//! alone (SETTINGS, PING, WINDOW_UPDATE, PRIORITY) and how headers and bodies are cut (CONTINUATION, padding) are
//! answered and made on each side; what ends a stream or a connection (RST_STREAM, GOAWAY) is handed on.

use std::{future::poll_fn, io, net::TcpStream, pin::pin, sync::Arc};

use bytes::Bytes;
use h2::{
    Ping, Reason, RecvStream, SendStream,
    client::{self, SendRequest},
    server::{self, SendResponse},
};
use http::{HeaderMap, Request, Response, Uri, header, request, response};
use tokio::{net, runtime, task, task::JoinSet};

use crate::{Fault, HttpRequest, Request as Seen, Shared, not_understood};

/// How many bytes of a gRPC body say how long the message is that follows.
const MESSAGE_HEAD: usize = 5;

/// Carries a connection, until both ends and all that is held on it are done.
pub(crate) fn carry(shared: &Arc<Shared>, client: TcpStream) -> io::Result<()> {
    client.set_nodelay(true)?;
    client.set_nonblocking(true)?;
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let server = net::TcpStream::connect(&shared.server).await?;
        server.set_nodelay(true)?;
        let client = net::TcpStream::from_std(client)?;
        let mut builder = client::Builder::new();
        let (requests, server) = builder
            .enable_push(false)
            .handshake(server)
            .await
            .map_err(told)?;
        let client = server::handshake(client).await.map_err(told)?;
        let mut connection = Connection {
            shared,
            client,
            requests,
            streams: JoinSet::new(),
            unanswered: Vec::new(),
        };
        let ended = connection.serve(task::spawn(server)).await;
        let Connection {
            client,
            mut streams,
            unanswered,
            ..
        } = connection;
        drop((client, unanswered)); // closed
        // What is held reaches the server without its client, too.
        while streams.join_next().await.is_some() {}
        ended
    })
}

/// A client's connection and the one to the server behind it.
struct Connection<'s> {
    shared: &'s Arc<Shared>,
    client: server::Connection<net::TcpStream, Bytes>,
    requests: SendRequest<Bytes>,
    /// Streams under way; one that is never answered hands its end back.
    streams: JoinSet<Option<SendResponse<Bytes>>>,
    /// Ends of streams that will have no answer: dropped, they would tell the client so.
    unanswered: Vec<SendResponse<Bytes>>,
}

impl Connection<'_> {
    /// Takes the client's requests. Once one of them is to have no answer, or the server is gone, the client is asked to
    /// begin no more (GOAWAY), and the connection is closed when all the others have their answers: a fault strikes the
    /// request that the plan says, and none beside it.
    async fn serve(&mut self, server: task::JoinHandle<Result<(), h2::Error>>) -> io::Result<()> {
        let mut server = pin!(server);
        let mut pings = self.client.ping_pong().ok_or(io::ErrorKind::Unsupported)?;
        let (mut closing, mut asked, mut quiet) = (false, false, 0);
        loop {
            let idle = closing && self.streams.is_empty();
            if !idle {
                quiet = 0;
            } else if !asked {
                pings.send_ping(Ping::opaque()).map_err(told)?;
                asked = true;
            }
            tokio::select! {
                biased;
                accepted = self.client.accept() => {
                    let Some(accepted) = accepted else {
                        return Ok(());
                    };
                    let (request, respond) = accepted.map_err(told)?;
                    let (shared, requests) = (Arc::clone(self.shared), self.requests.clone());
                    self.streams.spawn(stream(shared, requests, request, respond));
                }
                Some(ended) = self.streams.join_next() => {
                    if let Some(respond) = ended.map_err(io::Error::other)? {
                        self.unanswered.push(respond);
                        self.client.graceful_shutdown();
                        closing = true;
                    }
                }
                ended = &mut server, if !closing => {
                    ended.map_err(io::Error::other)?.map_err(told)?;
                    self.client.graceful_shutdown();
                    closing = true;
                }
                // A client that answers has read what was sent before it was asked, GOAWAY and the other answers. A ping
                // overtakes what waits to be sent, but the second one not what was sent with the first.
                pong = poll_fn(|cx| pings.poll_pong(cx)), if asked => {
                    pong.map_err(told)?;
                    asked = false;
                    quiet += 1;
                    if quiet == 2 {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// Why a stream was not carried to its end.
enum Cut {
    /// The plan says so.
    Plan,
    /// Its client gave it up, or is gone.
    Client,
    /// Its server did.
    Server(h2::Error),
}

/// Carries one request and its reply. What is returned gets no answer: it was lost.
async fn stream(
    shared: Arc<Shared>,
    requests: SendRequest<Bytes>,
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
) -> Option<SendResponse<Bytes>> {
    match exchange(&shared, requests, request, &mut respond).await {
        // The library tells the other end that a stream is dropped.
        Ok(()) | Err(Cut::Client) => None,
        Err(Cut::Server(error)) if error.is_reset() => {
            respond.send_reset(error.reason().unwrap_or(Reason::INTERNAL_ERROR));
            None
        }
        Err(Cut::Server(_) | Cut::Plan) => Some(respond),
    }
}

async fn exchange(
    shared: &Arc<Shared>,
    requests: SendRequest<Bytes>,
    request: Request<RecvStream>,
    respond: &mut SendResponse<Bytes>,
) -> Result<(), Cut> {
    let (mut parts, mut body) = request.into_parts();
    let (first, last) = judged(&parts, &mut body).await.map_err(|_| Cut::Client)?;
    let fault = shared.state().strike(&seen(&parts, &first));
    match fault {
        Fault::DropRequest => {
            shared.state().counts.dropped_requests += 1;
            return Err(Cut::Plan);
        }
        Fault::Delay(time) => {
            shared.state().counts.delayed += 1;
            tokio::time::sleep(time).await;
        }
        Fault::HoldRequest => hold(shared).await,
        Fault::Pass | Fault::DropReply | Fault::HoldReply => {}
    }
    name_server(&mut parts, &shared.server);
    let mut requests = requests.ready().await.map_err(Cut::Server)?;
    let ends = first.is_empty() && last;
    let (reply, mut to_server) = requests
        .send_request(Request::from_parts(parts, ()), ends)
        .map_err(Cut::Server)?;
    let rest = async {
        if ends {
            return Ok(());
        }
        send(&mut to_server, first, last)
            .await
            .map_err(|_| Side::To)?;
        if last {
            return Ok(());
        }
        forward(&mut body, &mut to_server).await
    };
    let reply = async {
        match fault {
            // Only these let a client that gives up stop what it has asked for.
            Fault::Pass | Fault::Delay(_) => pass(shared, reply, respond).await,
            _ => {
                let whole = Whole::receive(reply).await.map_err(Cut::Server)?;
                shared.state().counts.replies += 1;
                match fault {
                    Fault::DropReply => {
                        shared.state().counts.dropped_replies += 1;
                        return Err(Cut::Plan);
                    }
                    Fault::HoldReply => hold(shared).await,
                    _ => {}
                }
                whole.answer(respond).await.map_err(|_| Cut::Client)
            }
        }
    };
    // A server may answer before it has heard all; if it will hear no more, its answer says why.
    tokio::select! {
        Err(Side::From(_)) = rest => Err(Cut::Client),
        reply = reply => reply,
    }
}

/// Waits for the next release.
async fn hold(shared: &Arc<Shared>) {
    let shared = Arc::clone(shared);
    // It only waits, so there is nothing that could fail in it.
    let _ = task::spawn_blocking(move || shared.hold()).await;
}

/// What the plan sees of a body: all of it, or of gRPC's, which may go on as long as replies do, the first message. And
/// whether the request ends with it, which cannot be asked any more when its client is gone.
async fn judged(parts: &request::Parts, body: &mut RecvStream) -> Result<(Bytes, bool), h2::Error> {
    let grpc = parts
        .headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
    let mut read = Vec::new();
    while !(body.is_end_stream() || grpc && holds_message(&read)) {
        let Some(data) = body.data().await.transpose()? else {
            break;
        };
        body.flow_control().release_capacity(data.len())?;
        read.extend_from_slice(&data);
    }
    Ok((read.into(), body.is_end_stream()))
}

fn holds_message(read: &[u8]) -> bool {
    let Some((&[_, length @ ..], rest)) = read.split_first_chunk::<MESSAGE_HEAD>() else {
        return false;
    };
    usize::try_from(u32::from_be_bytes(length)).is_ok_and(|length| rest.len() >= length)
}

fn seen(parts: &request::Parts, body: &Bytes) -> Seen {
    let headers = parts.headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    });
    Seen::Http(HttpRequest {
        method: parts.method.to_string(),
        target: parts
            .uri
            .path_and_query()
            .map_or("", |path| path.as_str())
            .to_owned(),
        headers: headers.collect(),
        body: body.to_vec(),
    })
}

/// A client may name the server in `Host`, or not at all; the library asks for it in the URI.
fn name_server(parts: &mut request::Parts, server: &str) {
    if parts.uri.authority().is_some() {
        return;
    }
    let host = parts.headers.get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or(server);
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    if let Ok(uri) = Uri::builder()
        .scheme("http")
        .authority(host)
        .path_and_query(path)
        .build()
    {
        parts.uri = uri;
    }
}

/// Hands a reply on as it comes.
async fn pass(
    shared: &Shared,
    reply: client::ResponseFuture,
    respond: &mut SendResponse<Bytes>,
) -> Result<(), Cut> {
    let reply = tokio::select! {
        reply = reply => reply.map_err(Cut::Server)?,
        _ = poll_fn(|cx| respond.poll_reset(cx)) => return Err(Cut::Client),
    };
    let (parts, mut body) = reply.into_parts();
    let ends = body.is_end_stream();
    let mut to_client = respond
        .send_response(Response::from_parts(parts, ()), ends)
        .map_err(|_| Cut::Client)?;
    if !ends {
        forward(&mut body, &mut to_client)
            .await
            .map_err(|side| match side {
                Side::From(error) => Cut::Server(error),
                Side::To => Cut::Client,
            })?;
    }
    shared.state().counts.replies += 1;
    Ok(())
}

/// Which end of a stream failed.
enum Side {
    From(h2::Error),
    To,
}

/// Hands on what is left of a body, with its trailers, as it comes.
async fn forward(from: &mut RecvStream, to: &mut SendStream<Bytes>) -> Result<(), Side> {
    loop {
        let data = tokio::select! {
            biased;
            data = from.data() => data,
            _ = poll_fn(|cx| to.poll_reset(cx)) => return Err(Side::To),
        };
        let Some(data) = data.transpose().map_err(Side::From)? else {
            break;
        };
        from.flow_control()
            .release_capacity(data.len())
            .map_err(Side::From)?;
        let last = from.is_end_stream();
        send(to, data, last).await.map_err(|_| Side::To)?;
        if last {
            return Ok(());
        }
    }
    let trailers = from.trailers().await.map_err(Side::From)?;
    end(to, trailers).map_err(|_| Side::To)
}

/// Sends as much at a time as there is room for at the other end, so that what was sent is soon there.
async fn send(to: &mut SendStream<Bytes>, mut data: Bytes, last: bool) -> Result<(), h2::Error> {
    if data.is_empty() && last {
        return to.send_data(data, true);
    }
    while !data.is_empty() {
        to.reserve_capacity(data.len());
        let room = poll_fn(|cx| to.poll_capacity(cx)).await;
        let room = room.unwrap_or(Err(Reason::CANCEL.into()))?;
        let part = data.split_to(room.min(data.len()));
        to.send_data(part, last && data.is_empty())?;
    }
    Ok(())
}

fn end(to: &mut SendStream<Bytes>, trailers: Option<HeaderMap>) -> Result<(), h2::Error> {
    match trailers {
        Some(trailers) => to.send_trailers(trailers),
        None => to.send_data(Bytes::new(), true),
    }
}

/// A whole reply.
struct Whole {
    parts: response::Parts,
    body: Bytes,
    trailers: Option<HeaderMap>,
    /// It is headers and nothing else.
    bare: bool,
}

impl Whole {
    async fn receive(reply: client::ResponseFuture) -> Result<Self, h2::Error> {
        let (parts, mut from) = reply.await?.into_parts();
        let bare = from.is_end_stream();
        let mut body = Vec::new();
        while let Some(data) = from.data().await.transpose()? {
            from.flow_control().release_capacity(data.len())?;
            body.extend_from_slice(&data);
        }
        Ok(Self {
            parts,
            body: body.into(),
            trailers: from.trailers().await?,
            bare,
        })
    }

    async fn answer(self, respond: &mut SendResponse<Bytes>) -> Result<(), h2::Error> {
        let head = Response::from_parts(self.parts, ());
        let mut to = respond.send_response(head, self.bare)?;
        if self.bare {
            return Ok(());
        }
        send(&mut to, self.body, false).await?;
        end(&mut to, self.trailers)
    }
}

/// What ended a connection, as the rest of the wire tells it: what neither end should have said is not understood.
fn told(error: h2::Error) -> io::Error {
    if error.is_io() {
        return error
            .into_io()
            .unwrap_or_else(|| io::ErrorKind::Other.into());
    }
    if error.is_remote() {
        return io::Error::new(io::ErrorKind::ConnectionReset, error);
    }
    not_understood(format!("no HTTP/2: {error}"))
}

#[cfg(test)]
mod tests;
