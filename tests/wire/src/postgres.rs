//! PostgreSQL's protocol 3.0: where a request and its reply end
//! (<https://www.postgresql.org/docs/current/protocol-message-formats.html>).

use std::{
    collections::HashMap,
    io::{self, BufRead as _, Read as _, Write as _},
};

use crate::{Dialect, Peer, Reply, Request, Statement, not_understood};

/// A message's bytes, its type first.
type Message = Vec<u8>;

/// How long a message may be, in bytes.
const MAX_MESSAGE: u32 = 256 * 1024 * 1024;

const CANCEL: u32 = 80_877_102;
const TLS: u32 = 80_877_103;
const GSS: u32 = 80_877_104;

/// A connection.
#[derive(Debug, Default)]
pub(crate) struct Postgres {
    /// The SQL of prepared statements, by their names.
    statements: HashMap<Vec<u8>, String>,
    /// What portals were bound to, by their names.
    portals: HashMap<Vec<u8>, Statement>,
}

impl Dialect for Postgres {
    fn open(&mut self, client: &mut Peer, server: &mut Peer) -> io::Result<bool> {
        loop {
            if client.fill_buf()?.is_empty() {
                return Ok(false);
            }
            let start = untyped(client)?;
            let code = start
                .get(4..8)
                .and_then(|code| code.try_into().ok())
                .map_or(0, u32::from_be_bytes);
            match code {
                TLS | GSS => client.get_mut().write_all(b"N")?,
                CANCEL => {
                    server.get_mut().write_all(&start)?;
                    return Ok(false);
                }
                _ => {
                    server.get_mut().write_all(&start)?;
                    break;
                }
            }
        }
        loop {
            let said = message(server)?;
            client.get_mut().write_all(&said)?;
            match said.first() {
                Some(b'Z') => return Ok(true),
                Some(b'E') => return Ok(false),
                // 0 is "all well" and 12 the end of SASL; to all others the client has an answer.
                Some(b'R') if !matches!(said.get(5..9), Some([0, 0, 0, 0 | 12])) => {
                    let answer = message(client)?;
                    server.get_mut().write_all(&answer)?;
                }
                _ => {}
            }
        }
    }

    fn request(&mut self, client: &mut Peer) -> io::Result<Option<(Vec<u8>, Request)>> {
        let (mut bytes, mut executed) = (Vec::new(), Vec::new());
        loop {
            if client.fill_buf()?.is_empty() {
                return Ok(None);
            }
            let mut message = message(client)?;
            let kind = message.first().copied().unwrap_or_default();
            let mut texts = message
                .get(5..)
                .unwrap_or_default()
                .split(|byte| *byte == 0);
            let mut text = || texts.next().unwrap_or_default();
            match kind {
                b'X' => return Ok(None), // the server sees the connection end
                b'P' => {
                    let name = text().to_vec();
                    self.statements
                        .insert(name, String::from_utf8_lossy(text()).into_owned());
                }
                b'B' => {
                    let portal = text().to_vec();
                    if let Some(sql) = self.statements.get(text()).cloned() {
                        let bound = message.clone();
                        self.portals.insert(portal, Statement { sql, bound });
                    }
                }
                b'E' => executed.extend(self.portals.get(text()).cloned()),
                b'Q' => executed.push(Statement {
                    sql: String::from_utf8_lossy(text()).into_owned(),
                    bound: Vec::new(),
                }),
                b'C' | b'D' | b'S' => {}
                other => {
                    return Err(not_understood(format!(
                        "the client's message {:?}",
                        char::from(other)
                    )));
                }
            }
            bytes.append(&mut message);
            if matches!(kind, b'Q' | b'S') {
                return Ok(Some((bytes, Request::Sql(executed))));
            }
        }
    }

    fn reply(&mut self, server: &mut Peer) -> io::Result<Reply> {
        let mut bytes = Vec::new();
        loop {
            // A server that is told to stop says so and closes; what it said is the reply.
            if server.fill_buf()?.is_empty() {
                return Ok(Reply { bytes, last: true });
            }
            let mut message = message(server)?;
            let kind = message.first().copied().unwrap_or_default();
            if matches!(kind, b'G' | b'H' | b'W') {
                return Err(not_understood("COPY"));
            }
            bytes.append(&mut message);
            if kind == b'Z' {
                return Ok(Reply { bytes, last: false });
            }
        }
    }
}

/// A message with a type before its length.
fn message(peer: &mut Peer) -> io::Result<Message> {
    let mut kind = [0];
    peer.read_exact(&mut kind)?;
    let mut message = kind.to_vec();
    message.append(&mut untyped(peer)?);
    Ok(message)
}

/// What has only a length, which counts itself.
fn untyped(peer: &mut Peer) -> io::Result<Message> {
    let mut length = [0; 4];
    peer.read_exact(&mut length)?;
    let whole = u32::from_be_bytes(length);
    let Some(rest) = whole.checked_sub(4).filter(|rest| *rest <= MAX_MESSAGE) else {
        return Err(not_understood(format!("a message of {whole} bytes")));
    };
    let mut message = length.to_vec();
    peer.take(u64::from(rest)).read_to_end(&mut message)?;
    if u32::try_from(message.len()).ok() != Some(whole) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(message)
}
