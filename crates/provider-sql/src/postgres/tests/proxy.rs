//! A wire to the server that can fall silent, as one does behind a firewall that forgot the connection.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::postgres::PostgresUrl;

pub(crate) struct Proxy {
    /// The URL of the server by way of this wire.
    pub(crate) url: String,
    silent: watch::Sender<bool>,
    listening: JoinHandle<()>,
}

impl Proxy {
    /// A wire to the server of this URL.
    pub(crate) async fn start(url: &str) -> Self {
        let options = PostgresUrl::parse(url).unwrap().options;
        let server = (options.get_host().to_owned(), options.get_port());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (silent, _) = watch::channel(false);
        let listening = tokio::spawn({
            let silent = silent.clone();
            async move {
                loop {
                    let (client, _) = listener.accept().await.unwrap();
                    let server = TcpStream::connect(server.clone()).await.unwrap();
                    let (from_client, to_client) = client.into_split();
                    let (from_server, to_server) = server.into_split();
                    tokio::spawn(forward(from_client, to_server, silent.subscribe()));
                    tokio::spawn(forward(from_server, to_client, silent.subscribe()));
                }
            }
        });
        Self {
            url: by_way_of(url, address),
            silent,
            listening,
        }
    }

    /// Whether bytes are kept back.
    pub(crate) fn silence(&self, silent: bool) {
        self.silent.send_replace(silent);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// The URL with another address.
pub(crate) fn by_way_of(url: &str, address: SocketAddr) -> String {
    format!("{url}&host={}&port={}", address.ip(), address.port())
}

async fn forward(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut silent: watch::Receiver<bool>,
) {
    let mut buffer = vec![0; 8_192];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if silent.wait_for(|silent| !silent).await.is_err() {
            return;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
