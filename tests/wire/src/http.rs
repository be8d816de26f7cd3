//! HTTP/1.1: where a request and its reply end (RFC 9112, section 6).

use std::{
    io::{self, BufRead as _, Read as _, Write as _},
    str,
};

use crate::{Dialect, HttpRequest, Peer, Reply, Request, not_understood};

/// How long a head may be, in bytes.
const MAX_HEAD: usize = 256 * 1024;
/// How many headers it may have.
const MAX_HEADERS: usize = 128;

/// A connection.
#[derive(Debug, Default)]
pub(crate) struct Http {
    /// A reply to `HEAD` has no body, whatever its length says.
    head: bool,
}

type Headers = Vec<(String, String)>;

impl Dialect for Http {
    fn open(&mut self, _: &mut Peer, _: &mut Peer) -> io::Result<bool> {
        Ok(true)
    }

    fn request(&mut self, client: &mut Peer) -> io::Result<Option<(Vec<u8>, Request)>> {
        let Some(mut bytes) = head(client)? else {
            return Ok(None);
        };
        let mut room = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut parsed = httparse::Request::new(&mut room);
        parsed.parse(&bytes).map_err(bad("request"))?;
        let (method, target) = (parsed.method.unwrap_or_default().to_owned(), parsed.path);
        let target = target.unwrap_or_default().to_owned();
        let headers = owned(parsed.headers);
        if value(&headers, "Expect").is_some() {
            // Nobody else can say so: the server gets nothing before all of it is here.
            client
                .get_mut()
                .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let body = body(client, &headers, &mut bytes)?.unwrap_or_default();
        self.head = method == "HEAD";
        let request = HttpRequest {
            method,
            target,
            headers,
            body,
        };
        Ok(Some((bytes, Request::Http(request))))
    }

    fn reply(&mut self, server: &mut Peer) -> io::Result<Reply> {
        loop {
            let mut bytes = head(server)?.ok_or(io::ErrorKind::UnexpectedEof)?;
            let mut room = [httparse::EMPTY_HEADER; MAX_HEADERS];
            let mut parsed = httparse::Response::new(&mut room);
            parsed.parse(&bytes).map_err(bad("reply"))?;
            let code = parsed.code.unwrap_or_default();
            let headers = owned(parsed.headers);
            if code == 101 {
                return Err(not_understood("the server changed the protocol"));
            }
            if code < 200 {
                continue; // the reply proper follows
            }
            let mut last = value(&headers, "Connection")
                .is_some_and(|value| value.to_ascii_lowercase().contains("close"));
            let bodiless = self.head || matches!(code, 204 | 304);
            if !bodiless && body(server, &headers, &mut bytes)?.is_none() {
                server.read_to_end(&mut bytes)?;
                last = true;
            }
            return Ok(Reply { bytes, last });
        }
    }
}

/// Everything up to the empty line; `None` if the connection ends before it begins.
fn head(peer: &mut Peer) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let read = line(peer, &mut bytes)?;
        if read == 0 && bytes.is_empty() {
            return Ok(None);
        }
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if bytes == b"\r\n" {
            bytes.clear(); // some send an empty line after a body
        }
    }
    Ok(Some(bytes))
}

/// One more line, with its end; how long it is.
fn line(peer: &mut Peer, bytes: &mut Vec<u8>) -> io::Result<usize> {
    let left = u64::try_from(MAX_HEAD.saturating_sub(bytes.len())).unwrap_or(u64::MAX);
    let read = peer.take(left).read_until(b'\n', bytes)?;
    if bytes.len() >= MAX_HEAD {
        return Err(not_understood(format!(
            "a head of more than {MAX_HEAD} bytes"
        )));
    }
    Ok(read)
}

/// Reads the body that the headers tell of, appends it to `bytes` as it was sent, and returns it without frames. `None`
/// if they tell of none: a request has none then, and a reply goes on until the connection ends.
fn body(peer: &mut Peer, headers: &Headers, bytes: &mut Vec<u8>) -> io::Result<Option<Vec<u8>>> {
    if let Some(coding) = value(headers, "Transfer-Encoding") {
        if !coding.eq_ignore_ascii_case("chunked") {
            return Err(not_understood(format!("the transfer coding {coding:?}")));
        }
        return chunks(peer, bytes).map(Some);
    }
    let Some(length) = value(headers, "Content-Length") else {
        return Ok(None);
    };
    let length = length
        .parse()
        .map_err(|_| not_understood(format!("the length {length:?}")))?;
    exactly(peer, length, bytes).map(Some)
}

fn chunks(peer: &mut Peer, bytes: &mut Vec<u8>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut size = Vec::new();
        line(peer, &mut size)?;
        let length = match httparse::parse_chunk_size(&size) {
            Ok(httparse::Status::Complete((_, length))) => length,
            Ok(httparse::Status::Partial) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(_) => return Err(not_understood("a chunk without a size")),
        };
        bytes.append(&mut size);
        if length == 0 {
            break;
        }
        body.append(&mut exactly(peer, length, bytes)?);
        exactly(peer, 2, bytes)?; // the line's end
    }
    // Trailers, up to the empty line.
    loop {
        let mut trailer = Vec::new();
        if line(peer, &mut trailer)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&trailer);
        if trailer == b"\r\n" {
            return Ok(body);
        }
    }
}

/// The next `length` bytes, which are appended to `bytes`, too.
fn exactly(peer: &mut Peer, length: u64, bytes: &mut Vec<u8>) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    peer.take(length).read_to_end(&mut read)?;
    if u64::try_from(read.len()).ok() != Some(length) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    bytes.extend_from_slice(&read);
    Ok(read)
}

fn owned(headers: &[httparse::Header<'_>]) -> Headers {
    headers
        .iter()
        .map(|header| {
            let value = String::from_utf8_lossy(header.value).into_owned();
            (header.name.to_owned(), value)
        })
        .collect()
}

fn value<'h>(headers: &'h Headers, name: &str) -> Option<&'h str> {
    headers
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}

fn bad(what: &'static str) -> impl Fn(httparse::Error) -> io::Error {
    move |error| not_understood(format!("a {what} that is no HTTP/1.1: {error}"))
}
