//! A wire to the server that can fall silent, as one does behind a firewall that forgot the connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::postgres::PostgresUrl;

pub(crate) struct Proxy {
    /// The URL of the server by way of this wire.
    pub(crate) url: String,
    silent: watch::Sender<bool>,
    connections: Arc<AtomicUsize>,
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
        let connections = Arc::new(AtomicUsize::new(0));
        let listening = tokio::spawn({
            let (silent, connections) = (silent.clone(), connections.clone());
            async move {
                loop {
                    let (client, _) = listener.accept().await.unwrap();
                    connections.fetch_add(1, Ordering::Relaxed);
                    let server = TcpStream::connect(server.clone()).await.unwrap();
                    let (from_client, to_client) = client.into_split();
                    let (from_server, to_server) = server.into_split();
                    tokio::spawn(forward(from_client, to_server, silent.subscribe()));
                    tokio::spawn(forward(from_server, to_client, silent.subscribe()));
                }
            }
        });
        Self {
            url: format!("{url}&host={}&port={}", address.ip(), address.port()),
            silent,
            connections,
            listening,
        }
    }

    /// How many connections were made so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
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
