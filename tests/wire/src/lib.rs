//! A wire between a program and a server that loses what is sent over it, by plan: [`Wire::start`], then [`Wire::arm`].
//!
//! It is a proxy on 127.0.0.1 that knows where a request ends and where its reply does, so that it can let a server
//! commit a write and then lose the reply ([`Fault::DropReply`]): the one failure that makes a writer look like its own
//! duplicate. It speaks PostgreSQL, HTTP/1.1 and HTTP/2 (so gRPC), all in the clear. Its callers need no runtime: a
//! thread serves a connection.
//!
//! ```no_run
//! # use wire::{Fault, Plan, Protocol, Request, Wire};
//! # fn main() -> std::io::Result<()> {
//! let wire = Wire::start("127.0.0.1:8000", Protocol::Http)?; // a DynamoDB emulator; all is well so far
//! let endpoint = format!("http://{}", wire.address());
//! wire.arm(Plan::every(3, Fault::DropReply).only(Request::is_write));
//! // … let a client of `endpoint` write …
//! assert!(wire.counts().dropped_replies > 0);
//! # Ok(())
//! # }
//! ```

mod http;
mod http2;
mod plan;
mod postgres;

use std::{
    io::{self, BufReader, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

pub use plan::{Fault, HttpRequest, Plan, Request, Statement};

/// How to tell where a request ends and where its reply does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// PostgreSQL 3.0. A request goes up to `Sync` or is a simple `Query`, its reply up to `ReadyForQuery`. Start-up and
    /// authentication are never struck; TLS is declined, as by a server that has none.
    Postgres,
    /// HTTP/1.1: bodies by `Content-Length`, chunked, or up to the end of the connection.
    Http,
    /// HTTP/2 by prior knowledge, as gRPC speaks it. A request is a stream. A plan judges it when it is whole, or, since a
    /// call of gRPC may go on in both directions, once its first message is. A connection that a fault closes is closed
    /// when all that was asked on it beside has its reply; what is held keeps it open.
    Http2,
}

/// What has gone over a wire.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Requests that a plan has judged.
    pub requests: u64,
    /// Replies that the server sent whole, whatever became of them.
    pub replies: u64,
    /// Replies that the server sent whole, and no client ever saw.
    pub dropped_replies: u64,
    /// Requests that no server ever saw.
    pub dropped_requests: u64,
    /// Requests that reached the server late.
    pub delayed: u64,
    /// Requests and replies that are held right now, until [`Wire::release`].
    pub held: u64,
}

/// A proxy in front of one server. Dropped, it takes no new connections; those there are last as long as their clients.
#[derive(Debug)]
pub struct Wire {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    server: String,
    protocol: Protocol,
    state: Mutex<State>,
    /// Told of every change of the state.
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    plan: Plan,
    counts: Counts,
    /// How often what is held was let go.
    released: u64,
    closing: bool,
    complaints: Vec<String>,
}

impl State {
    fn strike(&mut self, request: &Request) -> Fault {
        self.counts.requests += 1;
        self.plan.fault(request)
    }
}

impl Wire {
    /// A wire to `server`, as `host:port`, on a free port of 127.0.0.1. Nothing is struck before [`Wire::arm`].
    ///
    /// # Errors
    ///
    /// There is no free port. A server that is not there shows when a client connects: its connection is closed.
    pub fn start(server: impl Into<String>, protocol: Protocol) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            server: server.into(),
            protocol,
            state: Mutex::new(State {
                plan: Plan::none(),
                counts: Counts::default(),
                released: 0,
                closing: false,
                complaints: Vec::new(),
            }),
            changed: Condvar::new(),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accepting.accept(&listener));
        Ok(Self { address, shared })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From the next request on this plan says what happens, on all connections together.
    pub fn arm(&self, plan: Plan) {
        self.shared.state().plan = plan;
    }

    /// What has gone over it so far.
    pub fn counts(&self) -> Counts {
        self.shared.state().counts
    }

    /// Lets all go on that is held now. What is held later is held again.
    pub fn release(&self) {
        self.shared.state().released += 1;
        self.shared.changed.notify_all();
    }

    /// What was said on it that it did not understand, and closed the connection for. A test should find none.
    pub fn complaints(&self) -> Vec<String> {
        self.shared.state().complaints.clone()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.shared.state().closing = true;
        self.shared.changed.notify_all();
        // Wakes the thread that accepts; if it is gone, nobody listens, and that is as well.
        let _ = TcpStream::connect(self.address);
    }
}

/// One connection's knowledge of its protocol.
trait Dialect {
    /// What comes before the first request. `false`: there will be none.
    fn open(&mut self, client: &mut Peer, server: &mut Peer) -> io::Result<bool>;
    /// The next request, with its bytes; `None` if the client is done.
    fn request(&mut self, client: &mut Peer) -> io::Result<Option<(Vec<u8>, Request)>>;
    /// The whole reply to the last request.
    fn reply(&mut self, server: &mut Peer) -> io::Result<Reply>;
}

/// A whole reply.
#[derive(Debug)]
struct Reply {
    bytes: Vec<u8>,
    /// The server closes the connection after it.
    last: bool,
}

/// One end of a connection.
type Peer = BufReader<TcpStream>;

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        while let Ok((client, _)) = listener.accept() {
            if self.state().closing {
                return;
            }
            let shared = Arc::clone(self);
            thread::spawn(move || shared.serve(client));
        }
    }

    fn serve(self: &Arc<Self>, client: TcpStream) {
        let mut dialect: Box<dyn Dialect> = match self.protocol {
            Protocol::Postgres => Box::new(postgres::Postgres::default()),
            Protocol::Http => Box::new(http::Http::default()),
            Protocol::Http2 => return self.complain(http2::carry(self, client)),
        };
        let Ok(mut client) = peer(client) else {
            return; // it is gone already
        };
        self.complain(self.carry(&mut client, &mut *dialect));
    }

    fn complain(&self, ended: io::Result<()>) {
        // What else ends a connection is either end's doing, and the other one sees it end.
        if let Err(error) = ended
            && error.kind() == io::ErrorKind::InvalidData
        {
            self.state().complaints.push(error.to_string());
        }
    }

    fn carry(&self, client: &mut Peer, dialect: &mut dyn Dialect) -> io::Result<()> {
        let mut server = self.connect()?;
        if !dialect.open(client, &mut server)? {
            return Ok(());
        }
        let mut used = false;
        while let Some((request, read)) = dialect.request(client)? {
            // A server may close what was idle, and that must not look like a fault of the plan.
            if self.protocol == Protocol::Http && std::mem::replace(&mut used, true) {
                server = self.connect()?;
            }
            let fault = self.state().strike(&read);
            match fault {
                Fault::DropRequest => {
                    self.state().counts.dropped_requests += 1;
                    return Ok(());
                }
                Fault::Delay(time) => {
                    self.state().counts.delayed += 1;
                    thread::sleep(time);
                }
                Fault::HoldRequest => self.hold(),
                Fault::Pass | Fault::DropReply | Fault::HoldReply => {}
            }
            server.get_mut().write_all(&request)?;
            let reply = dialect.reply(&mut server)?;
            self.state().counts.replies += 1;
            match fault {
                Fault::DropReply => {
                    self.state().counts.dropped_replies += 1;
                    return Ok(());
                }
                Fault::HoldReply => self.hold(),
                _ => {}
            }
            client.get_mut().write_all(&reply.bytes)?;
            if reply.last {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Waits for the next release.
    fn hold(&self) {
        let mut state = self.state();
        let released = state.released;
        state.counts.held += 1;
        while state.released == released && !state.closing {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.counts.held -= 1;
    }

    fn connect(&self) -> io::Result<Peer> {
        peer(TcpStream::connect(&self.server)?)
    }
}

fn peer(connection: TcpStream) -> io::Result<Peer> {
    connection.set_nodelay(true)?;
    Ok(BufReader::new(connection))
}

/// The error of what this wire does not understand.
fn not_understood(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

#[cfg(test)]
mod tests;
